// Starts to collect the timing of events and of long frames. Their shapes are those of the
// performance timeline, with the selector of an event's target.
(({describe}) => {
  globalThis.plumblineTimings?.observers.forEach((observer) => observer.disconnect());
  const startedAt = performance.now();
  const state = {
    events: [], frames: [], hasFirst: false, changedAt: startedAt, observers: [],
    // The times of the last event that ends an input, and of the last event that was reported.
    inputAt: 0, reportedAt: 0,
  };
  globalThis.plumblineTimings = state;
  for (const type of ['pointerup', 'click', 'keyup']) {
    const note = (event) => { state.inputAt = Math.max(state.inputAt, event.timeStamp); };
    addEventListener(type, note, {capture: true, passive: true});
  }
  const observe = (type, options, add) => {
    const observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        if (entry.startTime + entry.duration >= startedAt) add(entry);
      }
      state.changedAt = performance.now();
    });
    observer.observe({type, ...options});
    state.observers.push(observer);
  };
  const addEvent = (entry) => {
    state.reportedAt = Math.max(state.reportedAt, entry.startTime);
    state.events.push(describeEvent(entry));
  };
  const describeEvent = (entry) => ({
    name: entry.name,
    start: entry.startTime,
    duration: entry.duration,
    processingStart: entry.processingStart,
    processingEnd: entry.processingEnd,
    interaction: entry.interactionId ?? 0,
    target: entry.target ? describe(entry.target)?.selector ?? null : null,
  });
  observe('event', {durationThreshold: 16}, addEvent);
  // Reported for the first input of a page even if it took less than 16 ms.
  observe('first-input', {}, (entry) => {
    state.hasFirst = true;
    addEvent(entry);
  });
  observe('long-animation-frame', {}, (entry) => state.frames.push({
    start: entry.startTime,
    duration: entry.duration,
    scripts: entry.scripts.map((script) => ({
      url: script.sourceURL,
      function: script.sourceFunctionName,
      position: script.sourceCharPosition,
      invoker: script.invoker,
      start: script.startTime,
      duration: script.duration,
      forcedLayout: script.forcedStyleAndLayoutDuration,
    })),
  }));
  return true;
})
