//! A test agent that uses the agent protocol.

use plumbline_store::{AgentBounds, AgentStore, AgentToken};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::rig::{HttpRequest, NOW, Reply, Rig, Server, post, put};

/// A process of an agent at a location.
#[derive(Clone)]
pub struct Agent {
    pub token: String,
    pub location: &'static str,
}

impl Agent {
    pub async fn new(rig: &Rig, name: &str, location: &'static str) -> Self {
        Self::register(&*rig.store, name, location).await
    }

    /// Registers an agent with the store.
    pub async fn register(store: &dyn AgentStore, name: &str, location: &'static str) -> Self {
        Self::register_bounded(store, name, location, &AgentBounds::default()).await
    }

    /// Registers an agent whose token has bounds.
    pub async fn register_bounded(
        store: &dyn AgentStore,
        name: &str,
        location: &'static str,
        bounds: &AgentBounds,
    ) -> Self {
        let token = AgentToken::generate().unwrap();
        let key = token.key();
        store
            .add_agent(name, key.id(), key.digest(), bounds, NOW)
            .await
            .unwrap();
        Self {
            token: token.reveal(),
            location,
        }
    }

    /// Adds the headers that authenticate the agent.
    pub fn authorize(&self, request: HttpRequest) -> HttpRequest {
        request
            .header("Authorization", &format!("Bearer {}", self.token))
            .header("X-Plumbline-Protocol", "1")
    }

    pub fn announcement(&self) -> Value {
        json!({
            "process": "p1", "location": self.location, "chromium": "Chrome/1.2.3.4",
            "hostIndex": 1234.5, "slots": 2, "version": "0.1.0",
        })
    }

    /// Sends a message.
    pub async fn send(&self, server: &Server, step: &str, message: &Value) -> Reply {
        let request = post(&format!("/agent/v1/{step}"), message.to_string());
        server.send(&self.authorize(request)).await
    }

    /// Sends a message that must succeed, and returns the data of its response.
    pub async fn exchange(&self, server: &Server, step: &str, message: &Value) -> Value {
        let reply = self.send(server, step, message).await;
        assert_eq!(reply.status, 200, "{step}: {}", reply.text());
        assert_eq!(reply.header("x-plumbline-protocol"), Some("1"));
        reply.json()["data"].clone()
    }

    pub async fn request_work(&self, server: &Server, slot: u32, wait_ms: u64) -> Value {
        let message = json!({ "agent": self.announcement(), "slot": slot, "waitMs": wait_ms });
        self.exchange(server, "lease", &message).await
    }

    /// Leases a job, which there must be.
    pub async fn lease(&self, server: &Server, slot: u32) -> Value {
        let job = self.request_work(server, slot, 0).await["job"].clone();
        assert!(job.is_object(), "{job}");
        job
    }

    /// Sends a message about a job, and returns whether the lease is held or lost.
    pub async fn post_step(&self, server: &Server, step: &str, job: &Value, more: Value) -> Value {
        let mut message = json!({ "trackingId": job["trackingId"], "attempt": job["attempt"] });
        let members = message.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        self.exchange(server, step, &message).await["hold"].clone()
    }

    pub async fn heartbeat(&self, server: &Server, job: &Value) -> Value {
        let more = json!({ "agent": self.announcement() });
        self.post_step(server, "heartbeat", job, more).await
    }

    pub async fn finish(&self, server: &Server, job: &Value) -> Value {
        self.post_step(server, "finish", job, json!({ "report": report() }))
            .await
    }

    pub fn evidence(&self, job: &Value, kind: &str, query: &str) -> String {
        let id = job["trackingId"].as_str().unwrap();
        format!("/agent/v1/evidence/{id}/{}/{kind}{query}", job["attempt"])
    }

    pub fn upload(&self, job: &Value, offset: usize, sent: &[u8], whole: &[u8]) -> HttpRequest {
        let digest = Sha256::digest(whole);
        let sha256: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let query = format!("?offset={offset}&bytes={}&sha256={sha256}", whole.len());
        let path = self.evidence(job, "bundle", &query);
        self.authorize(put(&path, sent))
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
