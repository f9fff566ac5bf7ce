//! An agent elsewhere, as the wire has it.

use plumbline_store::{AgentBounds, AgentStore, AgentToken};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::rig::{Ask, Door, NOW, Reply, Rig, post, put};

/// An agent's process, at a place.
#[derive(Clone)]
pub struct Agent {
    pub token: String,
    pub location: &'static str,
}

impl Agent {
    pub async fn new(rig: &Rig, name: &str, location: &'static str) -> Self {
        Self::of(&*rig.store, name, location).await
    }

    /// One that the store knows from now on.
    pub async fn of(store: &dyn AgentStore, name: &str, location: &'static str) -> Self {
        Self::bound(store, name, location, &AgentBounds::default()).await
    }

    /// One whose token is bound to something else than its location.
    pub async fn bound(
        store: &dyn AgentStore,
        name: &str,
        location: &'static str,
        bounds: &AgentBounds,
    ) -> Self {
        let token = AgentToken::generate().unwrap();
        let key = token.key();
        let added = store.add_agent(name, key.id(), key.digest(), bounds, NOW);
        added.await.unwrap();
        Self {
            token: token.reveal(),
            location,
        }
    }

    pub fn dress(&self, ask: Ask) -> Ask {
        ask.header("Authorization", &format!("Bearer {}", self.token))
            .header("X-Plumbline-Protocol", "1")
    }

    pub fn announcement(&self) -> Value {
        json!({
            "process": "p1", "location": self.location, "chromium": "Chrome/1.2.3.4",
            "hostIndex": 1234.5, "slots": 2, "version": "0.1.0",
        })
    }

    pub async fn say(&self, door: &Door, step: &str, message: &Value) -> Reply {
        let ask = post(&format!("/agent/v1/{step}"), message.to_string());
        door.ask(&self.dress(ask)).await
    }

    pub async fn said(&self, door: &Door, step: &str, message: &Value) -> Value {
        let reply = self.say(door, step, message).await;
        assert_eq!(reply.status, 200, "{step}: {}", reply.text());
        assert_eq!(reply.header("x-plumbline-protocol"), Some("1"));
        reply.json()["data"].clone()
    }

    pub async fn ask_for_work(&self, door: &Door, slot: u32, wait_ms: u64) -> Value {
        let asked = json!({ "agent": self.announcement(), "slot": slot, "waitMs": wait_ms });
        self.said(door, "lease", &asked).await
    }

    /// The job that a slot gets, which there must be.
    pub async fn lease(&self, door: &Door, slot: u32) -> Value {
        let job = self.ask_for_work(door, slot, 0).await["job"].clone();
        assert!(job.is_object(), "{job}");
        job
    }

    pub async fn hold(&self, door: &Door, step: &str, job: &Value, more: Value) -> Value {
        let mut message = json!({ "trackingId": job["trackingId"], "attempt": job["attempt"] });
        let members = message.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        self.said(door, step, &message).await["hold"].clone()
    }

    pub async fn heartbeat(&self, door: &Door, job: &Value) -> Value {
        let more = json!({ "agent": self.announcement() });
        self.hold(door, "heartbeat", job, more).await
    }

    pub async fn finish(&self, door: &Door, job: &Value) -> Value {
        self.hold(door, "finish", job, json!({ "report": report() }))
            .await
    }

    pub fn evidence(&self, job: &Value, kind: &str, query: &str) -> String {
        let id = job["trackingId"].as_str().unwrap();
        format!("/agent/v1/evidence/{id}/{}/{kind}{query}", job["attempt"])
    }

    pub fn upload(&self, job: &Value, offset: usize, sent: &[u8], whole: &[u8]) -> Ask {
        let digest = Sha256::digest(whole);
        let sha256: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let query = format!("?offset={offset}&bytes={}&sha256={sha256}", whole.len());
        let path = self.evidence(job, "bundle", &query);
        self.dress(put(&path, sent))
    }
}

pub fn report() -> Value {
    json!({
        "format": 1,
        "requestedUrl": "https://example.com/",
        "finalUrl": "https://example.com/",
        "conditions": {
            "device": { "id": "mobile", "name": "Mobile", "mode": "mobile" },
            "network": { "id": "normal4g", "name": "4G", "downKbps": 1.0, "upKbps": 1.0, "rttMs": 1.0 },
            "location": { "id": "eu", "name": "Frankfurt", "mode": "agent", "addedRttMs": 0.0 },
            "cpu": { "rate": 1.0, "deviceIndex": null, "hostIndex": null, "hostIndexAfter": null },
        },
        "scores": { "performance": 97 },
        "metrics": null, "error": null, "document": null, "browser": null,
    })
}
