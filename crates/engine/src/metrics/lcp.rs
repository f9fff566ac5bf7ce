//! Largest Contentful Paint: the paint time of the main frame's last candidate for its largest
//! element.

use plumbline_trace::Trace;

use super::MetricError;

/// Returns the time of the frame's last event of the measured navigation if it is a candidate. If
/// it is an invalidation, or there is none, the last invalidation of the browser process is used
/// instead, as in Lighthouse (trace-processor.js, `computeValidLCPAllFrames`).
pub fn largest_contentful_paint(trace: &Trace) -> Result<f64, MetricError> {
    let last = trace.paints.largest.iter().rfind(|paint| {
        paint.frame == trace.frames.main_id
            && paint.ts_us > trace.navigation.time_origin_us
            && trace.navigation.includes(Some(&paint.navigation_id))
    });
    let candidate_us = last
        .filter(|paint| paint.size_px2.is_some())
        .map(|paint| paint.ts_us);
    candidate_us
        .or_else(|| trace.paints.largest_dropped_us.last().copied())
        .map(|ts_us| trace.since_origin_ms(ts_us))
        .ok_or(MetricError::NoLargestContentfulPaint)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(name: &str, ts_us: u64, args: Value) -> Value {
        json!({"name": name, "cat": "loading,blink.user_timing", "ph": "R", "pid": 2, "tid": 3, "ts": ts_us, "args": args})
    }

    fn navigation(ts_us: u64, id: &str) -> Value {
        let data = json!({"documentLoaderURL": "http://page/", "navigationId": id, "isLoadingMainFrame": true});
        event(
            "navigationStart",
            ts_us,
            json!({"frame": "F", "data": data}),
        )
    }

    fn candidate(ts_us: u64, navigation_id: &str) -> Value {
        let data = json!({"size": 100, "candidateIndex": 1, "navigationId": navigation_id});
        event(
            "largestContentfulPaint::Candidate",
            ts_us,
            json!({"frame": "F", "data": data}),
        )
    }

    #[test]
    fn a_paint_of_the_document_before_the_navigation_is_not_the_largest() {
        let frames = json!({"frames": [{"frame": "F", "url": "http://page/", "processId": 2}]});
        let page = [
            json!({"name": "thread_name", "cat": "__metadata", "ph": "M", "ts": 0, "pid": 2, "tid": 3,
                   "args": {"name": "CrRendererMain"}}),
            event("TracingStartedInBrowser", 1, json!({"data": frames})),
            navigation(1000, "A"),
            navigation(5000, "B"),
            candidate(6000, "A"),
        ];
        let largest = |more: &[Value]| {
            let events = [&page[..], more].concat();
            let trace = Trace::read(&serde_json::to_vec(&events).unwrap()).unwrap();
            largest_contentful_paint(&trace)
        };
        assert_eq!(largest(&[candidate(9000, "B")]), Ok(4.0));
        assert_eq!(largest(&[]), Err(MetricError::NoLargestContentfulPaint));
    }
}
