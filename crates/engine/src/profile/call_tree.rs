//! The tree of calls of a profiled load, and the time of its functions in parts of the load.

use std::collections::HashMap;

use plumbline_trace::{CodeLocation, Profile};

/// The share of a task's script time that a call on its path takes at least.
const MIN_PATH_SHARE: f64 = 0.5;
/// The most calls of a path.
const MAX_PATH: usize = 8;

/// The calls of all profiles of a load.
pub(super) struct CallTree<'p> {
    nodes: Vec<Node>,
    /// The functions of scripts, in the order of their first call.
    functions: Vec<&'p CodeLocation>,
    samples: Vec<Sample>,
}

struct Node {
    parent: Option<usize>,
    /// Index of the function of a script that the node is, or that called it.
    function: Option<usize>,
    /// False if the function has called itself, perhaps through others.
    is_outermost: bool,
}

/// A time in which a node was sampled.
#[derive(Clone, Copy)]
struct Sample {
    start_us: f64,
    end_us: f64,
    node: usize,
    position: Option<(i64, i64)>,
}

/// The times of a part of a load.
#[derive(Default)]
pub(super) struct Times<'p> {
    pub(super) functions: Vec<FunctionTimes<'p>>,
    /// The time in functions of scripts, and in what they called.
    pub(super) script_us: f64,
    /// Time in each node and in everything that it called.
    node_totals_us: Vec<f64>,
}

/// The time of a function of a script.
#[derive(Clone)]
pub(super) struct FunctionTimes<'p> {
    pub(super) function: &'p CodeLocation,
    /// Time in the function and in functions of the browser that it called.
    pub(super) self_us: f64,
    /// Time in the function and in everything that it called.
    pub(super) total_us: f64,
    /// Line and column of most of its own time.
    pub(super) hottest: Option<(i64, i64)>,
}

impl<'p> CallTree<'p> {
    pub(super) fn of(profiles: &'p [Profile]) -> Self {
        let mut tree = Self {
            nodes: Vec::new(),
            functions: Vec::new(),
            samples: Vec::new(),
        };
        let mut functions = HashMap::new();
        for profile in profiles {
            tree.add(profile, &mut functions);
        }
        tree.samples
            .sort_by(|a, b| a.start_us.total_cmp(&b.start_us));
        tree
    }

    fn add(
        &mut self,
        profile: &'p Profile,
        functions: &mut HashMap<(&'p str, &'p str, i64, i64), usize>,
    ) {
        let first = self.nodes.len();
        for node in &profile.nodes {
            let parent = node.parent.map(|parent| first + parent);
            let at = &node.function;
            let function = if node.is_script() {
                let key = (at.url.as_str(), at.script_id.as_str(), at.line, at.column);
                Some(*functions.entry(key).or_insert_with(|| {
                    self.functions.push(at);
                    self.functions.len() - 1
                }))
            } else {
                parent.and_then(|parent| self.nodes[parent].function)
            };
            let is_outermost = node.is_script()
                && !self
                    .callers(parent)
                    .any(|caller| self.nodes[caller].function == function);
            self.nodes.push(Node {
                parent,
                function,
                is_outermost,
            });
        }
        let ends = profile.samples.iter().skip(1).map(|sample| sample.at_us);
        // How long the last sample lasted is unknown.
        self.samples.extend(
            profile
                .samples
                .iter()
                .zip(ends)
                .map(|(sample, end_us)| Sample {
                    start_us: sample.at_us,
                    end_us,
                    node: first + sample.node,
                    position: sample.position,
                }),
        );
    }

    /// Returns a node and its callers, from the inside to the outside.
    fn callers(&self, node: Option<usize>) -> impl Iterator<Item = usize> {
        std::iter::successors(node, |node| self.nodes[*node].parent)
    }

    /// Returns the end of the last sample.
    pub(super) fn end_us(&self) -> f64 {
        let ends = self.samples.iter().map(|sample| sample.end_us);
        ends.fold(0.0, f64::max)
    }

    /// Returns the times of functions in intervals that are ordered by their start. What overlaps
    /// with an earlier interval counts once.
    pub(super) fn times(&self, intervals: Vec<(f64, f64)>) -> Times<'p> {
        let mut node_us = vec![0.0; self.nodes.len()];
        let mut places_us: HashMap<(usize, (i64, i64)), f64> = HashMap::new();
        let mut counted_until = f64::MIN;
        for (start_us, end_us) in intervals {
            let start_us = start_us.max(counted_until);
            counted_until = counted_until.max(end_us);
            // Samples of one profile do not overlap, so that their ends are ordered as well. Those
            // of several processes are all short, and only one of these shows the page.
            let first = self
                .samples
                .partition_point(|sample| sample.end_us <= start_us);
            let samples = self.samples[first..].iter();
            for sample in samples.take_while(|sample| sample.start_us < end_us) {
                let us = sample.end_us.min(end_us) - sample.start_us.max(start_us);
                if us <= 0.0 {
                    continue;
                }
                node_us[sample.node] += us;
                let function = self.nodes[sample.node].function;
                if let (Some(function), Some(position)) = (function, sample.position) {
                    *places_us.entry((function, position)).or_default() += us;
                }
            }
        }
        self.sums(node_us, places_us)
    }

    fn sums(&self, node_us: Vec<f64>, places_us: HashMap<(usize, (i64, i64)), f64>) -> Times<'p> {
        let functions = self.functions.iter().map(|function| FunctionTimes {
            function,
            self_us: 0.0,
            total_us: 0.0,
            hottest: None,
        });
        let mut times = Times {
            functions: functions.collect(),
            ..Times::default()
        };
        let mut totals_us = node_us.clone();
        // A node comes after its parent.
        for (index, node) in self.nodes.iter().enumerate().rev() {
            let total_us = totals_us[index];
            if let Some(parent) = node.parent {
                totals_us[parent] += total_us;
            }
            if let Some(function) = node.function {
                times.functions[function].self_us += node_us[index];
                times.script_us += node_us[index];
                if node.is_outermost {
                    times.functions[function].total_us += total_us;
                }
            }
        }
        let mut places: Vec<_> = places_us.into_iter().collect();
        places.sort_by(|(a, a_us), (b, b_us)| b_us.total_cmp(a_us).then(a.cmp(b)));
        for ((function, position), _) in places {
            times.functions[function].hottest.get_or_insert(position);
        }
        times.node_totals_us = totals_us;
        times
    }

    /// Returns the calls that each took at least half of the script time, from the outside to the
    /// inside. Of calls of a function by itself, only the outermost is part of it.
    pub(super) fn path(&self, times: &Times<'p>) -> Vec<FunctionTimes<'p>> {
        let least_us = times.script_us * MIN_PATH_SHARE;
        let mut path = Vec::new();
        // More than half of the time is in one branch, whose nodes come in the order of the calls.
        // Of two that have exactly half, the first is taken.
        let mut parent = None;
        for (index, node) in self.nodes.iter().enumerate() {
            let total_us = times.node_totals_us[index];
            if node.parent != parent || total_us <= 0.0 || total_us < least_us {
                continue;
            }
            parent = Some(index);
            if node.is_outermost
                && path.len() < MAX_PATH
                && let Some(function) = node.function
            {
                path.push(FunctionTimes {
                    total_us,
                    ..times.functions[function].clone()
                });
            }
        }
        path
    }

    /// Returns the function of a script with the name of a location that begins last before it.
    pub(super) fn function_around(&self, location: &CodeLocation) -> Option<&'p CodeLocation> {
        let functions = self.functions.iter().copied();
        let around = functions.filter(|function| {
            function.script_id == location.script_id
                && function.url == location.url
                && function.function == location.function
                && (function.line, function.column) <= (location.line, location.column)
        });
        around.max_by_key(|function| (function.line, function.column))
    }
}
