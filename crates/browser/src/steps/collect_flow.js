// Returns the entries of the performance timeline since the beginning of a step. If the step has
// loaded another document, these are all of its entries.
(async (observe, nodes) => {
  const isNewDocument = !globalThis.plumblineTimings;
  if (isNewDocument) observe(nodes, true);
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const painted = () => new Promise((resolve) => requestAnimationFrame(resolve));
  // Entries are reported after the frame that they belong to, or a moment after it was asked for.
  await Promise.race([painted().then(painted), pause(500)]);
  await pause(100);
  const state = globalThis.plumblineTimings;
  state.observers.forEach((observer) => observer.disconnect());
  const {
    startedAt, events, frames, tasks, shifts, paints, firstPaint, largestPaint, softNavigation,
    lastResponse,
  } = state;
  return {
    isNewDocument, startedAt, events, frames, tasks, shifts, paints, firstPaint, largestPaint,
    softNavigation, lastResponse,
  };
})
