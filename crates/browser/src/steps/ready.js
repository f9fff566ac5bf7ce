// Scrolls this element into view and returns its position, or a text on why it cannot be used yet.
async function () {
  if (!this.isConnected) return "was removed";
  if (!this.checkVisibility({ visibilityProperty: true })) return "is not visible";
  if (this.matches(":disabled")) return "is disabled";
  const position = () => {
    const { left, top, width, height } = this.getBoundingClientRect();
    return [left, top, width, height];
  };
  const isInside = ([left, top, width, height]) =>
    left >= 0 && top >= 0 && left + width <= innerWidth && top + height <= innerHeight;
  if (!isInside(position())) {
    this.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
  }
  const before = position();
  // A page that does not paint still gets an answer.
  await new Promise((resolve) => {
    requestAnimationFrame(() => requestAnimationFrame(resolve));
    setTimeout(resolve, 200);
  });
  const after = position();
  if (after.some((value, index) => Math.abs(value - before[index]) > 1)) return "is moving";
  return after[2] > 0 && after[3] > 0 ? after : "has no size";
}
