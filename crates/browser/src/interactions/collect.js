// Waits until the timing of the input has been reported and nothing follows, and returns it.
(async (maxMs) => {
  const QUIET_MS = 250;
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
    if (state.hasFirst && performance.now() - quietSince >= QUIET_MS) break;
    await pause(50);
  }
  const {events, frames} = state;
  return {events, frames};
})
