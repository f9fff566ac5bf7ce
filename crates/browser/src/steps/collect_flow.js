// Returns the entries of the performance timeline since the beginning of a step. If the step has
// loaded another document, these are all of its entries.
(async (observe, nodes) => {
  const isNewDocument = !globalThis.plumblineTimings;
  if (isNewDocument) observe(nodes, true);
  const state = globalThis.plumblineTimings;
  // The largest paint of a soft navigation is reported after the navigation.
  const hasLargestPaint = ([start]) => state.paints.some(([time]) => time >= start);
  const isComplete = () => !state.softNavigation || hasLargestPaint(state.softNavigation);
  await state.untilReported(5000, isComplete);
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
