// Waits until the timing of the input has been reported and nothing follows, and returns it.
(async (maxMs) => {
  const state = globalThis.plumblineTimings;
  await state.untilReported(maxMs, () => state.hasFirst);
  const {events, frames} = state;
  return {events, frames};
})
