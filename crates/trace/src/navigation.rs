//! The inspected frame, its processes, and the start of the navigation that is measured.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::TraceError;
use crate::event::TraceEvent;
use crate::frames::{Frames, NamedFrame, page_frames};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    pub process_id: i64,
    pub thread_id: i64,
}

/// Mark that Lighthouse writes into a trace at the start of a timespan. A marked trace need not
/// contain a navigation.
const LIGHTHOUSE_START: &str = "__lighthouseTimespanStart__";

#[derive(Debug, Clone)]
pub struct Navigation {
    /// Start of the last navigation of the main frame to a web address, which is time zero of all
    /// metrics. Client-side redirects before it do not count. If Lighthouse marked the start of a
    /// timespan, that is time zero.
    pub time_origin_us: f64,
    /// URL of that navigation, as the document loader has it.
    pub url: String,
    /// Request id of its document, if the trace has it.
    pub document_request: Option<String>,
    /// Request ids of the documents before it, in order; each navigated to the next by script or
    /// refresh.
    pub earlier_documents: Vec<String>,
    /// The main thread of each process that hosted the main frame; more than one if a navigation
    /// crossed sites.
    pub main_threads: Vec<Thread>,
    /// The threads of dedicated workers in these processes.
    pub worker_threads: Vec<Thread>,
}

impl Navigation {
    /// Returns whether an event that names this navigation, by the request id of its document, can
    /// belong to this one. Events of older Chromium name none.
    pub fn includes(&self, navigation_id: Option<&str>) -> bool {
        let named = navigation_id.filter(|id| !id.is_empty());
        match (named, self.document_request.as_deref()) {
            (Some(named), Some(document)) => named == document,
            _ => true,
        }
    }
}

/// All events about frames and navigations, resolved at the end of the trace.
#[derive(Debug, Default)]
pub(crate) struct NavigationEvents {
    started_in_browser: Vec<(f64, Vec<NamedFrame>)>,
    started_in_page: Vec<(f64, i64, String)>,
    committed: Vec<(f64, NamedFrame)>,
    process_ready: Vec<(f64, NamedFrame)>,
    navigation_starts: Vec<NavigationStart>,
    first_request: Option<(f64, Thread)>,
    lighthouse_start_us: Option<f64>,
    thread_names: Vec<(f64, Thread, ThreadName)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThreadName {
    RendererMain,
    BrowserMain,
    DedicatedWorker,
}

#[derive(Debug)]
struct NavigationStart {
    ts_us: f64,
    thread: Thread,
    /// Frame id from the event's own `frame` argument only.
    args_frame: Option<String>,
    frame: Option<String>,
    url: Option<String>,
    document_request: Option<String>,
    loads_main_frame: bool,
}

#[derive(Deserialize)]
struct NavigationArgs {
    frame: Option<String>,
    data: Option<NavigationData>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NavigationData {
    frame: Option<String>,
    #[serde(rename = "documentLoaderURL")]
    document_loader_url: Option<String>,
    is_loading_main_frame: Option<bool>,
    navigation_id: Option<String>,
}

#[derive(Deserialize)]
struct InData<T> {
    data: T,
}

#[derive(Deserialize)]
struct FramesData {
    frames: Option<Vec<NamedFrame>>,
}

#[derive(Deserialize)]
struct PageData {
    page: Option<String>,
}

#[derive(Deserialize)]
struct NameArgs {
    name: String,
}

#[derive(Deserialize)]
struct SyncArgs {
    sync_id: String,
}

impl NavigationEvents {
    pub(crate) fn record(&mut self, event: &TraceEvent) {
        let thread = Thread {
            process_id: event.process,
            thread_id: event.thread,
        };
        match event.name.as_ref() {
            "TracingStartedInBrowser" => {
                let frames = event
                    .args::<InData<FramesData>>()
                    .and_then(|args| args.data.frames);
                self.started_in_browser
                    .push((event.ts_us, frames.unwrap_or_default()));
            }
            "TracingStartedInPage" => {
                let page = event
                    .args::<InData<PageData>>()
                    .and_then(|args| args.data.page);
                self.started_in_page
                    .push((event.ts_us, event.process, page.unwrap_or_default()));
            }
            "FrameCommittedInBrowser" => {
                if let Some(args) = event.args::<InData<NamedFrame>>() {
                    self.committed.push((event.ts_us, args.data));
                }
            }
            "ProcessReadyInBrowser" => {
                if let Some(args) = event.args::<InData<NamedFrame>>() {
                    self.process_ready.push((event.ts_us, args.data));
                }
            }
            "navigationStart" => self.record_navigation(event, thread),
            "ResourceSendRequest" => match self.first_request {
                Some((first_us, _)) if first_us <= event.ts_us => {}
                _ => self.first_request = Some((event.ts_us, thread)),
            },
            "clock_sync" => {
                let marked = event.args::<SyncArgs>();
                if marked.is_some_and(|args| args.sync_id == LIGHTHOUSE_START) {
                    let first_us = self.lighthouse_start_us.unwrap_or(f64::INFINITY);
                    self.lighthouse_start_us = Some(first_us.min(event.ts_us));
                }
            }
            "thread_name" if event.is_metadata() => {
                let name = match event.args::<NameArgs>().map(|args| args.name).as_deref() {
                    Some("CrRendererMain") => ThreadName::RendererMain,
                    Some("CrBrowserMain") => ThreadName::BrowserMain,
                    Some("DedicatedWorker thread") => ThreadName::DedicatedWorker,
                    _ => return,
                };
                self.thread_names.push((event.ts_us, thread, name));
            }
            _ => {}
        }
    }

    fn record_navigation(&mut self, event: &TraceEvent, thread: Thread) {
        let Some(args) = event.args::<NavigationArgs>() else {
            return;
        };
        let NavigationArgs { frame, data } = args;
        let data = data.unwrap_or_default();
        let data_frame = data.frame.filter(|frame| !frame.is_empty());
        self.navigation_starts.push(NavigationStart {
            ts_us: event.ts_us,
            thread,
            frame: data_frame.or_else(|| frame.clone()),
            args_frame: frame.filter(|frame| !frame.is_empty()),
            url: data.document_loader_url,
            document_request: data.navigation_id,
            loads_main_frame: data.is_loading_main_frame == Some(true),
        });
    }

    pub(crate) fn resolve(mut self) -> Result<(Navigation, Frames), TraceError> {
        self.sort();
        let (main_id, starting_process) = self.main_frame().ok_or(TraceError::NoMainFrame)?;
        let main_threads = self.main_threads(&main_id, starting_process);
        if main_threads.is_empty() {
            return Err(TraceError::NoMainThread);
        }
        let mut earlier = self
            .navigation_starts
            .iter()
            .filter(|start| start.is_of_interest() && start.frame.as_ref() == Some(&main_id));
        let last = earlier.next_back();
        let time_origin_us = self
            .lighthouse_start_us
            .or(last.map(|start| start.ts_us))
            .ok_or(TraceError::NoNavigation)?;
        let committed = self.committed.iter().map(|(_, frame)| frame);
        let initial_frames = self
            .started_in_browser
            .first()
            .map_or(&[][..], |(_, frames)| frames);
        let named_frames = committed.filter(|frame| !frame.frame.is_empty() && frame.url.is_some());
        let in_page = page_frames(initial_frames.iter().chain(named_frames), &main_id);
        let url = last.and_then(|start| start.url.clone()).or_else(|| {
            let main = in_page.iter().find(|frame| frame.id == main_id)?;
            Some(main.url.clone())
        });
        let navigation = Navigation {
            time_origin_us,
            url: url.unwrap_or_default(),
            document_request: last.and_then(|start| start.document_request.clone()),
            worker_threads: self.worker_threads(&main_threads),
            main_threads,
            earlier_documents: earlier
                .filter_map(|start| start.document_request.clone())
                .collect(),
        };
        Ok((navigation, Frames { main_id, in_page }))
    }

    /// Sorts all events by time, because Chromium writes them unordered. The sort is stable.
    fn sort(&mut self) {
        self.started_in_browser.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.started_in_page.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.committed.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.process_ready.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.thread_names.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.navigation_starts
            .sort_by(|a, b| a.ts_us.total_cmp(&b.ts_us));
    }

    /// Determines the main frame and its process in three ways, newest Chromium first
    /// (trace-processor.js, `findMainFrameIds`).
    fn main_frame(&self) -> Option<(String, i64)> {
        let from_browser = || {
            let (_, frames) = self.started_in_browser.first()?;
            let main = frames
                .iter()
                .find(|frame| frame.parent.as_deref().unwrap_or_default().is_empty())?;
            let process = main.process_id.filter(|id| *id != 0)?;
            (!main.frame.is_empty()).then(|| (main.frame.clone(), process))
        };
        let from_page = || {
            let (_, process, page) = self.started_in_page.first()?;
            (!page.is_empty()).then(|| (page.clone(), *process))
        };
        let from_navigation = || {
            let start = self
                .navigation_starts
                .iter()
                .find(|start| start.is_of_interest() && start.loads_main_frame)?;
            let (_, thread) = self.first_request?;
            let frame = start.args_frame.clone()?;
            (thread == start.thread).then_some((frame, start.thread.process_id))
        };
        from_browser().or_else(from_page).or_else(from_navigation)
    }

    /// Returns the threads of dedicated workers in the processes of these main threads.
    fn worker_threads(&self, main_threads: &[Thread]) -> Vec<Thread> {
        let is_of_page = |thread: &Thread| {
            let mut main_threads = main_threads.iter();
            main_threads.any(|main| main.process_id == thread.process_id)
        };
        let named = self.thread_names.iter();
        let workers = named.filter(|(_, _, name)| *name == ThreadName::DedicatedWorker);
        let of_page = workers.map(|(_, thread, _)| *thread).filter(is_of_page);
        let distinct: BTreeSet<Thread> = of_page.collect();
        distinct.into_iter().collect()
    }

    fn main_threads(&self, main_id: &str, starting_process: i64) -> Vec<Thread> {
        let mut processes: Vec<i64> = Vec::new();
        for (_, frame) in self.committed.iter().chain(&self.process_ready) {
            if let Some(id) = frame.process_id
                && frame.frame == main_id
                && id != 0
                && !processes.contains(&id)
            {
                processes.push(id);
            }
        }
        if processes.is_empty() {
            processes.push(starting_process);
        }
        processes
            .into_iter()
            .filter_map(|process| {
                let thread_with_name = |wanted: ThreadName| {
                    self.thread_names
                        .iter()
                        .find(|(_, thread, name)| thread.process_id == process && *name == wanted)
                        .map(|(_, thread, _)| *thread)
                };
                // With --single-process pages run in the browser's own process.
                thread_with_name(ThreadName::RendererMain)
                    .or_else(|| thread_with_name(ThreadName::BrowserMain))
            })
            .collect()
    }
}

impl NavigationStart {
    /// Returns true unless the URL is empty, as for the initial document of every frame. A missing
    /// URL is Chromium before 67.
    fn is_of_interest(&self) -> bool {
        self.url.as_deref().is_none_or(|url| {
            ["chrome:", "http:", "https:"]
                .iter()
                .any(|scheme| url.starts_with(scheme))
        })
    }
}
