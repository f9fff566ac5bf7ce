//! Reads a trace in one pass: each event is passed to the collectors that may use it and then
//! dropped.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::TraceError;
use crate::activity::{ActivityEvents, ActivitySpan};
use crate::animations::{Animation, AnimationEvents};
use crate::culprits::Culprits;
use crate::document::Documents;
use crate::event::{FieldValue, TraceEvent};
use crate::exchanges::Exchange;
use crate::features::{FeatureEvents, FeatureUse};
use crate::frames::Frames;
use crate::input;
use crate::interactions::{Interaction, InteractionEvents};
use crate::navigation::{Navigation, NavigationEvents};
use crate::paints::{Milestone, Paints};
use crate::profiles::{PROFILE, Profile, ProfileEvents};
use crate::reflows::{ForcedReflow, ReflowEvents};
use crate::resources::{ResourceEvents, Resources};
use crate::screenshots::{FrameTimes, TracedScreenshot, distinct_from};
use crate::shifts::Shifts;
use crate::task_dependencies::{DependencyEvents, TaskDependencies};
use crate::tasks::{TaskEvents, Tasks};
use crate::user_timings::{TimingEvents, UserTiming};
use crate::work::{WorkEvents, WorkSpan, WorkerScript};

/// The name of the event of a frame that a compositor submitted.
const DRAW_FRAME: &str = "DrawFrame";
const SCREENSHOT_CATEGORY: &str = "disabled-by-default-devtools.screenshot";

/// Facts of a trace about one page load.
#[derive(Debug, Clone)]
pub struct Trace {
    pub navigation: Navigation,
    pub frames: Frames,
    pub tasks: Tasks,
    /// The same tasks with their dependencies on requests.
    pub task_dependencies: Vec<TaskDependencies>,
    /// Time of the main threads by kind of work.
    pub activity: Vec<ActivitySpan>,
    pub paints: Paints,
    pub shifts: Shifts,
    /// Screenshots since the time origin in order, without consecutive duplicates.
    pub screenshots: Vec<TracedScreenshot>,
    /// The time of the last screenshot, if the page drew frames after it that Chromium did not
    /// record.
    pub screenshots_end_us: Option<f64>,
    /// Exchanges of the page in order of their start, with what the trace reports of them. The
    /// protocol log has more.
    pub exchanges: Vec<Arc<Exchange>>,
    pub resources: Resources,
    /// All work of the page's main threads in order of the start, outer before inner.
    pub work: Vec<WorkSpan>,
    /// The times in which dedicated workers of the page ran scripts, in the order of their ends.
    pub worker_scripts: Vec<WorkerScript>,
    pub reflows: Vec<ForcedReflow>,
    /// Sampling profiles of the page's main threads, if the trace was recorded with a profiler.
    pub profiles: Vec<Profile>,
    pub documents: Documents,
    pub culprits: Culprits,
    pub animations: Vec<Animation>,
    pub user_timings: Vec<UserTiming>,
    pub interactions: Vec<Interaction>,
    /// The first use of each counted web platform feature.
    pub feature_uses: Vec<FeatureUse>,
    /// End of the last event of any process.
    pub end_us: f64,
}

impl Trace {
    /// Reads a trace in either format of Chromium and its tools (an array of events, or an object
    /// with `traceEvents`), gzipped or not.
    pub fn read(bytes: &[u8]) -> Result<Self, TraceError> {
        let text = input::text(bytes)?;
        let collected: Collected = serde_json::from_str(&text).map_err(TraceError::Json)?;
        collected.resolve()
    }

    pub fn since_origin_ms(&self, ts_us: f64) -> f64 {
        (ts_us - self.navigation.time_origin_us) / 1000.0
    }

    /// Returns the time at which the main frame first reached the milestone in the measured
    /// navigation.
    pub fn first_us(&self, milestone: Milestone) -> Option<f64> {
        self.paints
            .first_of(milestone, &self.frames.main_id, &self.navigation)
    }
}

#[derive(Default)]
struct Collected<'a> {
    events: usize,
    end_us: f64,
    navigation: NavigationEvents,
    tasks: TaskEvents,
    task_dependencies: DependencyEvents<'a>,
    paints: Paints,
    shifts: Shifts,
    screenshots: Vec<TracedScreenshot>,
    frame_times: FrameTimes,
    activity: ActivityEvents,
    resources: ResourceEvents,
    work: WorkEvents<'a>,
    reflows: ReflowEvents<'a>,
    profiles: ProfileEvents,
    documents: Documents,
    culprits: Culprits,
    animations: AnimationEvents,
    user_timings: TimingEvents,
    interactions: InteractionEvents,
    features: FeatureEvents,
}

impl<'a> Collected<'a> {
    fn record(&mut self, event: &TraceEvent<'a>) {
        self.events += 1;
        let end_us = event.ts_us + event.dur_us.unwrap_or(0.0);
        self.end_us = self.end_us.max(end_us);
        self.work.record(event);
        self.reflows.record(event);
        self.activity.record(event);
        self.task_dependencies.record(event);
        self.features.record(event);
        if event.kind.is_task {
            self.tasks.record(event);
        } else if event.category.contains(SCREENSHOT_CATEGORY) {
            if let Some(screenshot) = TracedScreenshot::of(event) {
                self.frame_times.screenshot(screenshot.ts_us);
                self.screenshots.push(screenshot);
            }
        } else if event.name.starts_with(PROFILE) {
            self.profiles.record(event);
        } else if event.name == DRAW_FRAME {
            self.frame_times.draw(event.ts_us);
        } else if event.is_key() {
            self.navigation.record(event);
            self.paints.record(event);
            self.shifts.record(event);
            self.resources.record(event);
            self.documents.record(event);
            self.culprits.record(event);
            self.animations.record(event);
            self.user_timings.record(event);
            self.interactions.record(event);
        }
    }

    fn resolve(self) -> Result<Trace, TraceError> {
        if self.events == 0 {
            return Err(TraceError::NoEvents);
        }
        let (navigation, frames) = self.navigation.resolve()?;
        let threads = &navigation.main_threads;
        let mut reflows = self.reflows.all();
        let tasks = self.tasks.of_threads(threads);
        let (mut exchanges, resources) = self.resources.resolve();
        // Requests of other tabs are left out; those of workers name no frame of the page's tree.
        exchanges.retain(|exchange| {
            let frame = exchange.frame.as_deref();
            frame.is_none_or(|frame| frames.contains(frame))
        });
        Ok(Trace {
            worker_scripts: self.work.worker_scripts(&navigation.worker_threads),
            work: self
                .work
                .of_threads(threads, &frames, self.end_us, &mut reflows),
            reflows,
            task_dependencies: self.task_dependencies.of_threads(threads, &tasks),
            tasks,
            activity: self.activity.of_threads(threads),
            paints: self.paints.of_page(&frames),
            shifts: self.shifts.of_page(&frames, threads),
            screenshots_end_us: self.frame_times.screenshots_end_us(),
            screenshots: distinct_from(self.screenshots, navigation.time_origin_us),
            exchanges,
            resources,
            documents: self.documents.of_page(&frames, threads),
            profiles: self.profiles.of_threads(threads),
            culprits: self.culprits.of_page(threads),
            animations: self.animations.of_threads(threads),
            user_timings: self.user_timings.of_processes(threads),
            interactions: self.interactions.all(),
            feature_uses: self.features.all(),
            end_us: self.end_us,
            navigation,
            frames,
        })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Collected<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut collected = Self::default();
        deserializer.deserialize_any(TopLevel(&mut collected))?;
        Ok(collected)
    }
}

struct TopLevel<'c, 'a>(&'c mut Collected<'a>);

impl<'de: 'a, 'a> Visitor<'de> for TopLevel<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array of trace events or an object with \"traceEvents\"")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(event) = seq.next_element::<TraceEvent<'a>>()? {
            self.0.record(&event);
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<FieldValue>()? {
            if key.text() == "traceEvents" {
                map.next_value_seed(EventSequence(self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct EventSequence<'c, 'a>(&'c mut Collected<'a>);

impl<'de: 'a, 'a> DeserializeSeed<'de> for EventSequence<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(TopLevel(self.0))
    }
}
