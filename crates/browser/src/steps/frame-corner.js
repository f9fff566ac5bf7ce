// Scrolls this frame element into view, and returns the position of the document in it.
function () {
  const position = this.getBoundingClientRect();
  const isInside =
    position.left >= 0 &&
    position.top >= 0 &&
    position.right <= innerWidth &&
    position.bottom <= innerHeight;
  if (!isInside) this.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
  const { left, top } = this.getBoundingClientRect();
  const style = getComputedStyle(this);
  const inside = (edge) => parseFloat(edge) || 0;
  return [
    left + this.clientLeft + inside(style.paddingLeft),
    top + this.clientTop + inside(style.paddingTop),
  ];
}
