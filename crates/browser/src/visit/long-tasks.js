// How many milliseconds ago the last long task ended; long ago if there was none.
// Asked only when the network is quiet, so that nothing of ours runs while the page loads. That it
// answers at all says that no task is running now.
(() => {
  const watch = (globalThis.plumblineLongTasks ??= (() => {
    const state = {lastEnd: 0};
    state.note = (entries) => {
      for (const entry of entries) {
        state.lastEnd = Math.max(state.lastEnd, entry.startTime + entry.duration);
      }
    };
    state.observer = new PerformanceObserver((list, observer, options) => {
      // The browser remembers only the first few hundred entries of the time before we asked.
      if (options?.droppedEntriesCount) state.lastEnd = performance.now();
      state.note(list.getEntries());
    });
    state.observer.observe({type: 'longtask', buffered: true});
    return state;
  })());
  watch.note(watch.observer.takeRecords());
  return performance.now() - watch.lastEnd;
})()
