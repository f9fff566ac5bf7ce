// Scrolls a control into view, focuses it if it is used by keys, and returns the point of its
// middle in the viewport of the device, or a text on why it cannot be used.
(async (index, focus) => {
  const element = globalThis.plumblineControls?.[index];
  if (!element?.isConnected) return 'was removed';
  const isInside = () => {
    const {left, top, width, height} = element.getBoundingClientRect();
    return left >= 0 && top >= 0 && left + width <= innerWidth && top + height <= innerHeight;
  };
  if (!isInside()) element.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
  // A page that does not paint still gets an answer.
  await new Promise((resolve) => {
    requestAnimationFrame(() => requestAnimationFrame(resolve));
    setTimeout(resolve, 500);
  });
  const {left, top, width, height} = element.getBoundingClientRect();
  const [x, y] = [left + width / 2, top + height / 2];
  if (width <= 0 || height <= 0 || x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) {
    return 'cannot be scrolled into view';
  }
  const parentOf = (node) =>
    node.assignedSlot ?? node.parentElement ?? node.getRootNode().host ?? null;
  let hit = document.elementFromPoint(x, y);
  while (hit?.shadowRoot) {
    const inner = hit.shadowRoot.elementFromPoint(x, y);
    if (!inner || inner === hit) break;
    hit = inner;
  }
  let isHit = hit?.closest('label')?.control === element;
  for (let at = hit; at; at = parentOf(at)) isHit ||= at === element;
  if (!isHit) return 'is covered by another element';
  if (focus) element.focus({preventScroll: true});
  const {offsetLeft, offsetTop, scale} = visualViewport;
  return [(x - offsetLeft) * scale, (y - offsetTop) * scale];
})
