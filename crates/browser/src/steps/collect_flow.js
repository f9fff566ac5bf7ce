// Returns the entries of the performance timeline since the beginning of a step. If the step has
// loaded another document, these are all of its entries.
(async (observe, nodes) => {
  const isNewDocument = !globalThis.plumblineTimings;
  if (isNewDocument) observe(nodes, true);
  const state = globalThis.plumblineTimings;
  await state.untilReported(5000);
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
