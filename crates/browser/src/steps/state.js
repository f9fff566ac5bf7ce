// Returns whether this element has the expected visibility, attributes and properties.
function ({ visible, attributes, properties }) {
  const isVisible = () => {
    const { width, height } = this.getBoundingClientRect();
    return width > 0 && height > 0 && this.checkVisibility({ visibilityProperty: true });
  };
  const contains = (actual, expected) =>
    expected !== null && typeof expected === "object"
      ? actual !== null &&
        typeof actual === "object" &&
        Object.entries(expected).every(([name, value]) => contains(actual[name], value))
      : actual === expected;
  return (
    (visible === null || visible === undefined || isVisible() === visible) &&
    Object.entries(attributes ?? {}).every(([name, value]) => this.getAttribute(name) === value) &&
    Object.entries(properties ?? {}).every(([name, value]) =>
      value !== null && typeof value === "object"
        ? Object.entries(value).every(([key, inner]) => contains(this[name]?.[key], inner))
        : this[name] === value,
    )
  );
}
