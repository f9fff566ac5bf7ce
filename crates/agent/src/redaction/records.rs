//! Removes the secrets of a client from what was measured after a visit.

use plumbline_browser::ProfiledLoad;
use plumbline_bundle::{FlowRecords, InteractionRecords, ProfileRecords};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;

use super::Secrets;
use crate::AuditFault;

impl Secrets {
    /// Removes the secrets from the names and scripts of interactions.
    pub(crate) fn redact_interactions(&self, records: InteractionRecords) -> InteractionRecords {
        let redacted = self.redact_records(records);
        redacted.unwrap_or_else(|| {
            InteractionRecords::failed("The interactions contain values of the state.")
        })
    }

    /// Removes the secrets from the texts of measured steps. Screenshots show what the page shows.
    pub(crate) fn redact_flow(&self, mut records: FlowRecords) -> FlowRecords {
        let screenshots = records.take_screenshots();
        let redacted = self.redact_records(records);
        let mut records = redacted
            .unwrap_or_else(|| FlowRecords::failed("The steps contain values of the state."));
        for (step, screenshot) in records.steps.iter_mut().zip(screenshots) {
            step.screenshot = screenshot;
        }
        records
    }

    /// Removes the secrets from the names and URLs of a profile and from its trace, on a blocking
    /// thread, with the sessions in the log of its load.
    pub(crate) async fn redact_profile(
        &self,
        profiled: ProfiledLoad,
    ) -> Result<ProfiledLoad, AuditFault> {
        let secrets = self.clone();
        let redacting = spawn_blocking(move || secrets.redact_load(profiled));
        redacting.await.map_err(AuditFault::of)?
    }

    fn redact_load(&self, profiled: ProfiledLoad) -> Result<ProfiledLoad, AuditFault> {
        let ProfiledLoad {
            records,
            trace,
            log,
        } = profiled;
        let (log, all) = match trace {
            Some(_) => self.with_sessions_of(&log)?,
            None => (log, self.clone()),
        };
        let records = all.redact_records(records);
        let trace = trace.map(|trace| all.finder.redact_json(&trace).unwrap_or(trace));
        Ok(ProfiledLoad {
            records: records.unwrap_or_else(|| {
                ProfileRecords::failed("The profile contains values of the state.")
            }),
            trace,
            log,
        })
    }

    /// Removes the secrets from records; `None` if a secret is a word of the format itself, which
    /// makes them unreadable.
    fn redact_records<T: Serialize + DeserializeOwned>(&self, records: T) -> Option<T> {
        let text = serde_json::to_vec(&records).ok()?;
        match self.finder.redact_json(&text) {
            None => Some(records),
            Some(redacted) => serde_json::from_slice(&redacted).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::redaction::secrets::tests::secrets;

    #[tokio::test]
    async fn secrets_are_removed_from_a_profile_and_its_trace_with_sessions_of_its_load() {
        let records = |url: &str, name: &str| -> ProfileRecords {
            let function = json!({ "function": name, "url": url, "line": 0, "column": 9 });
            let time = json!({ "function": function, "selfMs": 1.0, "totalMs": 2.0 });
            serde_json::from_value(json!({ "functions": [time] })).unwrap()
        };
        let log = json!([{ "method": "Network.responseReceivedExtraInfo", "params": {
            "headers": { "set-cookie": "next=a-long-new-session" },
        } }]);
        let redacted = secrets()
            .redact_profile(ProfiledLoad {
                records: records("https://a.example/?k=12345678", "a-long-new-session"),
                trace: Some(br#"{"url":"/?k=12345678","s":"a-long-new-session"}"#.to_vec()),
                log: log.to_string().into_bytes(),
            })
            .await
            .unwrap();
        let expected = records("https://a.example/?k=[redacted]", "[redacted]");
        assert_eq!(redacted.records, expected);
        let trace = String::from_utf8(redacted.trace.unwrap()).unwrap();
        assert_eq!(trace, r#"{"url":"/?k=[redacted]","s":"[redacted]"}"#);
        let log = String::from_utf8(redacted.log).unwrap();
        assert!(!log.contains("a-long-new-session"), "{log}");
    }

    #[test]
    fn secrets_are_removed_from_measured_steps_and_their_screenshots_stay() {
        let records = |url: &str| -> FlowRecords {
            serde_json::from_value(json!({ "steps": [{
                "title": "press Enter", "kind": "navigation", "url": url, "settledMs": 1.0,
                "requests": 1, "transferBytes": 2, "longTasks": 0, "tbtMs": 0.0, "cls": 0.0,
                "screenshot": {
                    "mime_type": "image/jpeg", "width_px": 1, "height_px": 1, "data": "searched-for",
                },
            }] }))
            .unwrap()
        };
        let redacted = secrets().redact_flow(records("http://a.example/?q=searched-for"));
        assert_eq!(redacted, records("http://a.example/?q=[redacted]"));
    }

    #[test]
    fn secrets_are_removed_from_interactions() {
        let records = |name: &str| -> InteractionRecords {
            let control = json!({
                "kind": "menu", "name": name, "selector": "#m", "snippet": "<button>",
            });
            serde_json::from_value(json!({ "controls": 1, "interactions": [control] })).unwrap()
        };
        let redacted = secrets().redact_interactions(records("Hello 12345678"));
        assert_eq!(redacted, records("Hello [redacted]"));
        assert_eq!(
            secrets().redact_interactions(records("Hello")),
            records("Hello")
        );
    }
}
