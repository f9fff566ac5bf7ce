// trace.mjs FILE: parses a trace with DevTools and prints a summary.
import {readFileSync} from 'node:fs';
import {fromModules} from './modules.mjs';

const engine = await fromModules('lighthouse/core/lib/trace-engine.js');
const {traceEvents, metadata} = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const processor = new engine.TraceProcessor(engine.TraceHandlers);
engine.Helpers.SyntheticEvents.SyntheticEventsManager.createAndActivate(traceEvents);
await processor.parse(traceEvents, {metadata, isCPUProfile: false, isFreshRecording: false});
const {Meta, NetworkRequests, PageLoadMetrics, Screenshots} = processor.data;
console.log(JSON.stringify({
  url: Meta.mainFrameURL,
  navigations: Meta.mainFrameNavigations.length,
  requests: NetworkRequests.byTime.map(request => request.args.data.url),
  metrics: [...PageLoadMetrics.metricScoresByFrameId.values()].length,
  screenshots: (Screenshots.legacySyntheticScreenshots ?? Screenshots.screenshots ?? []).length,
  insights: processor.insights?.size ?? 0,
}));
