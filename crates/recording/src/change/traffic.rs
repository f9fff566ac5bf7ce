//! Changes of whether, when and how requests are answered.

use std::collections::BTreeSet;

use super::editor::Editor;
use super::pattern::host_matches;
use super::{ChangeProblem, Effect, Pattern};
use crate::{ConnectFailure, ConnectResult, Endpoint, Handling, Protocol, RecordedEndpoint};

/// The longest delay: ten minutes, longer than a visit.
const MAX_DELAY_MS: u32 = 600_000;

impl Editor {
    /// Blocks requests. A server of which all requests are blocked refuses connections, so that
    /// those that a page makes in advance, and requests that differ from the recorded ones, fail as
    /// well.
    pub fn block(&mut self, pattern: &Pattern) -> Result<Effect, ChangeProblem> {
        let mut blocked = 0;
        for index in self.selected(pattern)? {
            let handling = &mut self.recording.exchanges[index].handling;
            blocked += usize::from(handling.is_answered());
            *handling = Handling::Blocked;
        }
        let exchanges = &self.recording.exchanges;
        let used: BTreeSet<_> = exchanges.iter().map(|it| &it.endpoint).collect();
        let answered = exchanges.iter().filter(|it| it.handling.is_answered());
        let answered: BTreeSet<_> = answered.map(|it| &it.endpoint).collect();
        let mut endpoints = 0;
        for recorded in &mut self.recording.endpoints {
            let endpoint = &recorded.endpoint;
            let is_blocked = used.contains(endpoint) && !answered.contains(endpoint);
            if is_blocked && matches!(recorded.result, ConnectResult::Connected { .. }) {
                recorded.result = ConnectResult::Failed(ConnectFailure::Refused);
                endpoints += 1;
            }
        }
        Ok(Effect {
            exchanges: blocked,
            endpoints,
            notes: Vec::new(),
        })
    }

    /// Makes servers silent.
    pub fn blackhole(&mut self, host: &str) -> Result<Effect, ChangeProblem> {
        if host.is_empty() {
            return Err(ChangeProblem::EmptyPattern);
        }
        self.list_endpoints(host);
        let mut silent: BTreeSet<Endpoint> = BTreeSet::new();
        for recorded in self.endpoints_of(Some(host)) {
            if recorded.result != ConnectResult::Silent {
                recorded.result = ConnectResult::Silent;
                silent.insert(recorded.endpoint.clone());
            }
        }
        let exchanges = self.recording.exchanges.iter();
        let exchanges = exchanges.filter(|it| silent.contains(&it.endpoint));
        Ok(Effect {
            exchanges: exchanges.count(),
            endpoints: silent.len(),
            notes: Vec::new(),
        })
    }

    /// Adds servers that have exchanges but are not listed, which imported recordings may lack.
    fn list_endpoints(&mut self, host: &str) {
        let exchanges = self.recording.exchanges.iter();
        let missing = exchanges.filter(|it| host_matches(host, &it.endpoint.host));
        let mut missing: BTreeSet<_> = missing.map(|it| it.endpoint.clone()).collect();
        for recorded in &self.recording.endpoints {
            missing.remove(&recorded.endpoint);
        }
        let result = ConnectResult::Failed(ConnectFailure::Refused);
        let added = missing.into_iter().map(|endpoint| RecordedEndpoint {
            endpoint,
            result: result.clone(),
        });
        self.recording.endpoints.extend(added);
    }

    /// Delays responses.
    pub fn delay(&mut self, pattern: &Pattern, ms: u32) -> Result<Effect, ChangeProblem> {
        if ms > MAX_DELAY_MS {
            return Err(ChangeProblem::Delay { max: MAX_DELAY_MS });
        }
        let indexes = self.selected(pattern)?;
        Ok(self.change_responses(&indexes, |response| {
            response.wait_ms += f64::from(ms);
            ms > 0
        }))
    }

    /// Makes responses begin earlier, if they came later than a time.
    pub fn answer_within(&mut self, pattern: &Pattern, ms: u32) -> Result<Effect, ChangeProblem> {
        let indexes = self.selected(pattern)?;
        Ok(self.change_responses(&indexes, |response| {
            let is_late = response.wait_ms > f64::from(ms);
            if is_late {
                response.wait_ms = f64::from(ms);
            }
            is_late
        }))
    }

    /// Sets the protocol of servers that were connected to.
    pub fn set_protocol(
        &mut self,
        host: Option<&str>,
        new_protocol: Protocol,
    ) -> Result<Effect, ChangeProblem> {
        let mut changed: BTreeSet<Endpoint> = BTreeSet::new();
        let mut effect = Effect::default();
        for recorded in self.endpoints_of(host) {
            let ConnectResult::Connected { protocol, .. } = &mut recorded.result else {
                continue;
            };
            if *protocol == new_protocol {
                continue;
            }
            if new_protocol == Protocol::Http2 && !recorded.endpoint.is_secure {
                effect.note(format!(
                    "{} keeps HTTP/1.1, since browsers use HTTP/2 only with TLS.",
                    recorded.endpoint
                ));
                continue;
            }
            *protocol = new_protocol;
            changed.insert(recorded.endpoint.clone());
        }
        let exchanges = self.recording.exchanges.iter();
        let exchanges = exchanges.filter(|it| changed.contains(&it.endpoint));
        effect.exchanges = exchanges.count();
        effect.endpoints = changed.len();
        Ok(effect)
    }

    /// Returns the servers of a host, or all.
    fn endpoints_of(&mut self, host: Option<&str>) -> impl Iterator<Item = &mut RecordedEndpoint> {
        let endpoints = self.recording.endpoints.iter_mut();
        endpoints
            .filter(move |it| host.is_none_or(|pattern| host_matches(pattern, &it.endpoint.host)))
    }
}
