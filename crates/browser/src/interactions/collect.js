// Waits until the timing of the input has been reported and nothing follows, and returns it.
(async (maxMs) => {
  const QUIET_MS = 250;
  // An event is reported when its frame has been presented, and not at all if that took less than
  // 16 ms. On a busy machine a frame is presented late.
  const UNREPORTED_QUIET_MS = 1000;
  const state = globalThis.plumblineTimings;
  const endsAt = performance.now() + maxMs;
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const painted = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const frame = () => Promise.race([painted(), pause(500)]);
  await frame();
  await frame();
  const acknowledgedAt = performance.now();
  while (performance.now() < endsAt) {
    const quietSince = Math.max(state.changedAt, acknowledgedAt);
    const isReported = state.reportedAt >= state.inputAt - 1;
    const quiet = isReported ? QUIET_MS : UNREPORTED_QUIET_MS;
    if (state.hasFirst && performance.now() - quietSince >= quiet) break;
    await pause(50);
  }
  const {events, frames} = state;
  return {events, frames};
})
