//! Sampling profiles of scripts, which V8 writes into a trace in chunks.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;

use crate::event::{TraceEvent, WithData};
use crate::navigation::Thread;
use crate::reflows::{CodeLocation, ScriptId};

/// The name of the event that begins a profile, and the start of the names of all its events.
pub(crate) const PROFILE: &str = "Profile";
const CHUNK: &str = "ProfileChunk";

/// A sampling profile of the scripts on one thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub thread: Thread,
    /// The tree of calls. A node comes after its parent.
    pub nodes: Vec<ProfileNode>,
    /// The samples in the order of their time.
    pub samples: Vec<ProfileSample>,
}

/// A function in the tree of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileNode {
    /// The index of the calling node; `None` for the root.
    pub parent: Option<usize>,
    /// The function. A function of the browser has no URL, like the nodes for the time without a
    /// script, whose names are in brackets.
    pub function: CodeLocation,
}

/// The function that ran at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProfileSample {
    pub at_us: f64,
    /// The index of the node.
    pub node: usize,
    /// Zero-based line and column in the script, if the browser reports them.
    pub position: Option<(i64, i64)>,
}

impl ProfileNode {
    /// Returns whether the node is a function of a script.
    pub fn is_script(&self) -> bool {
        !self.function.url.is_empty()
    }
}

/// The events of all profiles. Chunks come from another thread than the one that is profiled.
#[derive(Debug, Default)]
pub(crate) struct ProfileEvents {
    profiles: Vec<RecordedProfile>,
    /// Index in `profiles`, by process and id.
    indices: HashMap<(i64, String), usize>,
}

#[derive(Debug)]
struct RecordedProfile {
    thread: Thread,
    /// The time to which the next difference is added.
    time_us: f64,
    nodes: Vec<ProfileNode>,
    /// Index in `nodes`, by the id of the node.
    indices: HashMap<i64, usize>,
    samples: Vec<ProfileSample>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    start_time: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow, default)]
    cpu_profile: CpuProfile<'a>,
    #[serde(default)]
    time_deltas: Vec<f64>,
    /// One-based lines of the samples; 0 if unknown.
    #[serde(default)]
    lines: Vec<i64>,
    /// One-based columns of the samples.
    #[serde(default)]
    columns: Vec<i64>,
}

#[derive(Default, Deserialize)]
struct CpuProfile<'a> {
    #[serde(borrow, default)]
    nodes: Vec<Node<'a>>,
    /// Ids of nodes.
    #[serde(default)]
    samples: Vec<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node<'a> {
    id: i64,
    parent: Option<i64>,
    #[serde(borrow)]
    call_frame: CallFrame<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallFrame<'a> {
    #[serde(borrow, default)]
    function_name: Cow<'a, str>,
    #[serde(default)]
    script_id: ScriptId,
    #[serde(borrow, default)]
    url: Cow<'a, str>,
    #[serde(default)]
    line_number: i64,
    #[serde(default)]
    column_number: i64,
}

impl ProfileEvents {
    pub(crate) fn record(&mut self, event: &TraceEvent) {
        let key = (event.process, event.id.as_ref().to_owned());
        if event.name == PROFILE {
            let start: Option<WithData<Start>> = event.args();
            self.indices.insert(key, self.profiles.len());
            self.profiles.push(RecordedProfile {
                thread: event.thread(),
                time_us: start.map_or(event.ts_us, |start| start.data.start_time),
                nodes: Vec::new(),
                indices: HashMap::new(),
                samples: Vec::new(),
            });
        } else if event.name == CHUNK
            && let Some(at) = self.indices.get(&key)
            && let Some(profile) = self.profiles.get_mut(*at)
            && let Some(chunk) = event.args::<WithData<Chunk>>()
        {
            profile.add(chunk.data);
        }
    }

    /// Returns the profiles of these threads that have samples.
    pub(crate) fn of_threads(self, threads: &[Thread]) -> Vec<Profile> {
        let profiles = self.profiles.into_iter();
        let of_page = profiles
            .filter(|profile| threads.contains(&profile.thread) && !profile.samples.is_empty());
        of_page
            .map(|mut profile| {
                // Samples of different sources may arrive in another order.
                profile.samples.sort_by(|a, b| a.at_us.total_cmp(&b.at_us));
                Profile {
                    thread: profile.thread,
                    nodes: profile.nodes,
                    samples: profile.samples,
                }
            })
            .collect()
    }
}

impl RecordedProfile {
    fn add(&mut self, chunk: Chunk<'_>) {
        for node in chunk.cpu_profile.nodes {
            let frame = node.call_frame;
            // A parent that is not known would hide its calls from every sum.
            let parent = node
                .parent
                .and_then(|parent| self.indices.get(&parent).copied());
            self.indices.insert(node.id, self.nodes.len());
            self.nodes.push(ProfileNode {
                parent,
                function: CodeLocation {
                    script_id: frame.script_id.text(),
                    url: frame.url.into_owned(),
                    function: frame.function_name.into_owned(),
                    line: frame.line_number.max(0),
                    column: frame.column_number.max(0),
                },
            });
        }
        let samples = chunk.cpu_profile.samples.into_iter().zip(chunk.time_deltas);
        for (index, (id, delta_us)) in samples.enumerate() {
            self.time_us += delta_us;
            let line = chunk.lines.get(index).copied().filter(|line| *line > 0);
            let column = chunk
                .columns
                .get(index)
                .copied()
                .filter(|column| *column > 0);
            if let Some(node) = self.indices.get(&id) {
                self.samples.push(ProfileSample {
                    at_us: self.time_us,
                    node: *node,
                    position: line
                        .zip(column)
                        .map(|(line, column)| (line - 1, column - 1)),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: Thread = Thread {
        process_id: 1,
        thread_id: 1,
    };

    fn profiles_in(events: &str) -> Vec<Profile> {
        let events: Vec<TraceEvent> = serde_json::from_str(events).unwrap();
        let mut profiles = ProfileEvents::default();
        events.iter().for_each(|event| profiles.record(event));
        profiles.of_threads(&[THREAD])
    }

    const START: &str = r#"{"name":"Profile","ph":"P","id":"0x1","ts":1005,"pid":1,"tid":1,
        "args":{"data":{"startTime":1000}}}"#;

    fn chunk(of: &str, data: &str) -> String {
        format!(
            r#"{{"name":"ProfileChunk","ph":"P","id":"{of}","ts":2000,"pid":1,"tid":7,
                "args":{{"data":{data}}}}}"#
        )
    }

    const ROOT: &str = r#"{"id":1,"callFrame":{"functionName":"(root)","scriptId":0}}"#;
    const CALL: &str = r#"{"id":2,"parent":1,"callFrame":{"functionName":"f","scriptId":4,
        "url":"a.js","lineNumber":2,"columnNumber":8,"codeType":"JS"}}"#;

    #[test]
    fn chunks_of_a_profile_are_joined_and_their_samples_are_ordered_by_time() {
        let first = chunk(
            "0x1",
            &format!(
                r#"{{"cpuProfile":{{"nodes":[{ROOT},{CALL}],"samples":[1,2]}},
                    "timeDeltas":[100,50],"lines":[0,3],"columns":[0,12]}}"#
            ),
        );
        let second = chunk(
            "0x1",
            r#"{"cpuProfile":{"samples":[2,1]},"timeDeltas":[300,-200]}"#,
        );
        let profiles = profiles_in(&format!("[{START},{first},{second}]"));
        let [profile] = &profiles[..] else {
            panic!("{profiles:?}");
        };
        assert_eq!(profile.thread, THREAD);
        let function = &profile.nodes[1].function;
        assert_eq!((function.line, function.column), (2, 8));
        assert_eq!(profile.nodes[1].parent, Some(0));
        assert!(profile.nodes[1].is_script() && !profile.nodes[0].is_script());
        let samples: Vec<_> = profile
            .samples
            .iter()
            .map(|sample| (sample.at_us, sample.node, sample.position))
            .collect();
        assert_eq!(
            samples,
            [
                (1100.0, 0, None),
                (1150.0, 1, Some((2, 11))),
                (1250.0, 0, None),
                (1450.0, 1, None),
            ]
        );
    }

    #[test]
    fn profiles_of_other_threads_and_chunks_without_a_profile_are_left_out() {
        let samples =
            format!(r#"{{"cpuProfile":{{"nodes":[{ROOT}],"samples":[1]}},"timeDeltas":[100]}}"#);
        let worker = START.replace(r#""tid":1"#, r#""tid":3"#);
        let chunk = chunk("0x1", &samples);
        assert_eq!(profiles_in(&format!("[{START},{chunk}]")).len(), 1);
        assert!(profiles_in(&format!("[{worker},{chunk}]")).is_empty());
        assert!(profiles_in(&format!("[{chunk}]")).is_empty());
        assert!(profiles_in(&format!("[{START}]")).is_empty());
    }

    #[test]
    fn samples_of_unknown_nodes_only_advance_the_time() {
        let data = format!(
            r#"{{"cpuProfile":{{"nodes":[{ROOT}],"samples":[9,1]}},"timeDeltas":[100,10]}}"#
        );
        let profiles = profiles_in(&format!("[{START},{}]", chunk("0x1", &data)));
        assert_eq!(profiles[0].samples.len(), 1);
        assert_eq!(profiles[0].samples[0].at_us, 1110.0);
    }
}
