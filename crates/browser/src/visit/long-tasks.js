// Returns the milliseconds since the end of the last long task, or since the start if there was none.
// It runs only when the network is idle, so that no script of ours runs while the page loads. A
// response shows that no task is running now.
(() => {
  const state = (globalThis.plumblineLongTasks ??= (() => {
    const state = {lastEnd: 0};
    state.add = (entries) => {
      for (const entry of entries) {
        state.lastEnd = Math.max(state.lastEnd, entry.startTime + entry.duration);
      }
    };
    state.observer = new PerformanceObserver((list, observer, options) => {
      // The browser buffers only the first few hundred entries from before the observer existed.
      if (options?.droppedEntriesCount) state.lastEnd = performance.now();
      state.add(list.getEntries());
    });
    state.observer.observe({type: 'longtask', buffered: true});
    return state;
  })());
  state.add(state.observer.takeRecords());
  return performance.now() - state.lastEnd;
})()
