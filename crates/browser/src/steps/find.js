// Returns the elements below this document or element that match a selector. Inside an element,
// its shadow root is searched.
function (kind, text) {
  const root = this.shadowRoot ?? this;
  // Calls a function with this root and all open shadow roots below it.
  const forEachRoot = (root, visit) => {
    visit(root);
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) forEachRoot(element.shadowRoot, visit);
    }
  };
  const collapse = (string) => string.replace(/\s+/g, " ").trim();
  const found = [];
  if (kind === "css") {
    found.push(...root.querySelectorAll(text));
  } else if (kind === "pierce") {
    forEachRoot(root, (root) => found.push(...root.querySelectorAll(text)));
  } else if (kind === "xpath") {
    const owner = this.ownerDocument ?? this;
    const type = XPathResult.ORDERED_NODE_SNAPSHOT_TYPE;
    const result = owner.evaluate(text, root, null, type, null);
    for (let index = 0; index < result.snapshotLength; index++) {
      const node = result.snapshotItem(index);
      found.push(node instanceof Element ? node : node.parentElement);
    }
  } else {
    const wanted = collapse(text);
    const ignored = new Set(["SCRIPT", "STYLE", "TEMPLATE", "HEAD", "TITLE", "NOSCRIPT"]);
    const shows = (element) =>
      !ignored.has(element.tagName) &&
      (collapse(element.textContent ?? "").includes(wanted) ||
        (element instanceof HTMLInputElement &&
          ["button", "submit", "reset"].includes(element.type) &&
          collapse(element.value).includes(wanted)));
    forEachRoot(root, (root) => {
      for (const element of root.querySelectorAll("*")) {
        if (shows(element) && ![...element.children].some(shows)) found.push(element);
      }
    });
  }
  return found.filter((element) => element !== null);
}
