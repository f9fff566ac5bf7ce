// Starts to collect entries of the performance timeline. Their shapes are those of the timeline,
// with the selector of an event's target. In a new document, the entries since its navigation
// count.
(({describe}, isNewDocument = false) => {
  globalThis.plumblineTimings?.observers.forEach((observer) => observer.disconnect());
  const startedAt = isNewDocument ? 0 : performance.now();
  const state = {
    startedAt, events: [], frames: [], tasks: [], shifts: [], paints: [],
    firstPaint: null, largestPaint: null, softNavigation: null, lastResponse: 0,
    hasFirst: false, changedAt: startedAt, observers: [],
    // The times of the last event that ends an input, and of the last event that was reported.
    inputAt: 0, reportedAt: 0,
  };
  globalThis.plumblineTimings = state;
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const painted = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const frame = () => Promise.race([painted(), pause(500)]);
  // Waits until the timing of the last input has been reported and nothing follows.
  state.untilReported = async (maxMs, isComplete = () => true) => {
    const QUIET_MS = 250;
    // An event is reported when its frame has been presented, and not at all if that took less
    // than 16 ms. On a busy machine a frame is presented late.
    const UNREPORTED_QUIET_MS = 1000;
    const endsAt = performance.now() + maxMs;
    await frame();
    await frame();
    const acknowledgedAt = performance.now();
    while (performance.now() < endsAt) {
      const quietSince = Math.max(state.changedAt, acknowledgedAt);
      const isReported = state.reportedAt >= state.inputAt - 1;
      const quiet = isReported ? QUIET_MS : UNREPORTED_QUIET_MS;
      if (isComplete() && performance.now() - quietSince >= quiet) break;
      await pause(50);
    }
  };
  for (const type of ['pointerup', 'click', 'keyup']) {
    const note = (event) => { state.inputAt = Math.max(state.inputAt, event.timeStamp); };
    addEventListener(type, note, {capture: true, passive: true});
  }
  const observe = (type, options, add) => {
    // Older browsers do not report soft navigations.
    if (!PerformanceObserver.supportedEntryTypes.includes(type)) return;
    const observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        if (entry.startTime + entry.duration >= startedAt) add(entry);
      }
      state.changedAt = performance.now();
    });
    observer.observe({type, buffered: isNewDocument, ...options});
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
  observe('longtask', {}, (entry) => state.tasks.push([entry.startTime, entry.duration]));
  observe('layout-shift', {}, (entry) => {
    if (!entry.hadRecentInput) state.shifts.push([entry.startTime, entry.value]);
  });
  observe('paint', {}, (entry) => {
    if (entry.name === 'first-contentful-paint') state.firstPaint = entry.startTime;
  });
  observe('largest-contentful-paint', {}, (entry) => { state.largestPaint = entry.startTime; });
  observe('soft-navigation', {}, (entry) => {
    state.softNavigation = [entry.startTime, entry.startTime + entry.duration];
  });
  observe('interaction-contentful-paint', {}, ({largestContentfulPaint: paint}) => {
    if (paint) state.paints.push([paint.startTime, paint.size]);
  });
  observe('resource', {}, (entry) => {
    state.lastResponse = Math.max(state.lastResponse, entry.responseEnd);
  });
  return true;
})
