//! Time that the main threads spent, by kind of work.

use std::collections::HashMap;

use crate::event::TraceEvent;
use crate::navigation::Thread;

/// Kind of work that a span of the main thread's time is attributed to. The event names of each
/// kind are those of Lighthouse 13.5.0, core/lib/tracehouse/task-groups.js, in fewer groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activity {
    Script,
    StyleAndLayout,
    Paint,
    Parse,
    Other,
}

impl Activity {
    pub const ALL: [Self; 5] = [
        Self::Script,
        Self::StyleAndLayout,
        Self::Paint,
        Self::Parse,
        Self::Other,
    ];
}

/// A span of time with one kind of work; no two overlap on one thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ActivitySpan {
    pub start_us: f64,
    pub end_us: f64,
    pub activity: Activity,
}

/// Events with a kind of work, of every thread: the page's threads are known only at the end of the
/// trace.
#[derive(Debug, Default)]
pub(crate) struct ActivityEvents {
    by_thread: HashMap<(i64, i64), Vec<ActivitySpan>>,
}

impl ActivityEvents {
    pub(crate) fn record(&mut self, event: &TraceEvent) {
        let Some(dur_us) = event.dur_us.filter(|dur_us| *dur_us > 0.0) else {
            return;
        };
        let Some(activity) = event.kind.activity else {
            return;
        };
        self.by_thread
            .entry((event.process, event.thread))
            .or_default()
            .push(ActivitySpan {
                start_us: event.ts_us,
                end_us: event.ts_us + dur_us,
                activity,
            });
    }

    /// Returns the spans of the given threads in order of time. Nested work counts as its own
    /// kind: a layout that a script forced is layout.
    pub(crate) fn of_threads(mut self, threads: &[Thread]) -> Vec<ActivitySpan> {
        let mut all = Vec::new();
        for thread in threads {
            let id = (thread.process_id, thread.thread_id);
            if let Some(pieces) = self.by_thread.remove(&id) {
                flatten(pieces, &mut all);
            }
        }
        all.sort_by(|a, b| a.start_us.total_cmp(&b.start_us));
        all
    }
}

/// Cuts nested pieces into spans that do not overlap: at any time the innermost piece counts.
fn flatten(mut pieces: Vec<ActivitySpan>, into: &mut Vec<ActivitySpan>) {
    pieces.sort_by(|a, b| {
        let by_start = a.start_us.total_cmp(&b.start_us);
        by_start.then(b.end_us.total_cmp(&a.end_us))
    });
    let mut open: Vec<ActivitySpan> = Vec::new();
    let mut now_us = f64::NEG_INFINITY;
    let mut emit = |from: f64, to: f64, activity: Activity| {
        if to > from {
            into.push(ActivitySpan {
                start_us: from,
                end_us: to,
                activity,
            });
        }
    };
    for piece in pieces {
        while let Some(top) = open.last().filter(|top| top.end_us <= piece.start_us) {
            emit(now_us.max(top.start_us), top.end_us, top.activity);
            now_us = now_us.max(top.end_us);
            open.pop();
        }
        if let Some(top) = open.last() {
            emit(now_us.max(top.start_us), piece.start_us, top.activity);
        }
        now_us = now_us.max(piece.start_us);
        open.push(piece);
    }
    while let Some(top) = open.pop() {
        emit(now_us.max(top.start_us), top.end_us, top.activity);
        now_us = now_us.max(top.end_us);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn piece(start_us: f64, end_us: f64, activity: Activity) -> ActivitySpan {
        ActivitySpan {
            start_us,
            end_us,
            activity,
        }
    }

    fn flat(pieces: Vec<ActivitySpan>) -> Vec<ActivitySpan> {
        let mut all = Vec::new();
        flatten(pieces, &mut all);
        all
    }

    #[test]
    fn nested_work_counts_as_its_own_kind() {
        let spans = flat(vec![
            piece(0.0, 100.0, Activity::Other),
            piece(10.0, 60.0, Activity::Script),
            piece(20.0, 30.0, Activity::StyleAndLayout),
        ]);
        assert_eq!(
            spans,
            [
                piece(0.0, 10.0, Activity::Other),
                piece(10.0, 20.0, Activity::Script),
                piece(20.0, 30.0, Activity::StyleAndLayout),
                piece(30.0, 60.0, Activity::Script),
                piece(60.0, 100.0, Activity::Other),
            ]
        );
    }

    proptest! {
        #[test]
        fn spans_never_overlap(
            pieces in proptest::collection::vec((0.0..1000.0_f64, 0.1..500.0_f64), 0..40)
        ) {
            let pieces: Vec<_> = pieces
                .into_iter()
                .map(|(start, dur)| piece(start, start + dur, Activity::Script))
                .collect();
            let spans = flat(pieces);
            for pair in spans.windows(2) {
                prop_assert!(pair[0].end_us <= pair[1].start_us);
            }
        }
    }
}
