// Returns the index of the first selector of which an element is visible, or -1. All open shadow
// roots are searched.
function (selectors) {
  const roots = [];
  const collect = (root) => {
    roots.push(root);
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) collect(element.shadowRoot);
    }
  };
  collect(this);
  const isVisible = (element) => {
    const { width, height } = element.getBoundingClientRect();
    return width > 0 && height > 0 && element.checkVisibility({ visibilityProperty: true });
  };
  return selectors.findIndex((selector) =>
    roots.some((root) => [...root.querySelectorAll(selector)].some(isVisible)),
  );
}
