use std::time::Duration;

use plumbline_store::{
    AgentBounds, AgentPresence, AgentStore, AgentToken, AttemptState, LeaseScope,
    PRESENCE_RETENTION_MS, ReleaseReason, ReturnReason, SlotLimit, StoreError, Timestamp,
};

use super::{Backend, LEASE, NOW, accepted, later, lease, measured, single};

async fn add(agents: &dyn AgentStore, name: &str) -> AgentToken {
    let token = AgentToken::generate().unwrap();
    let key = token.key();
    let bounds = AgentBounds::default();
    let added = agents.add_agent(name, key.id(), key.digest(), &bounds, NOW);
    added.await.unwrap();
    token
}

fn presence(process: &str, agent: Option<&AgentToken>, location: &str) -> AgentPresence {
    AgentPresence {
        process: process.into(),
        agent_id: agent.map(|token| token.key().id().to_owned()),
        location: location.to_owned(),
        chromium: "Chrome/1.2.3.4".to_owned(),
        host_index: Some(1234.5),
        slots: 2,
        version: "0.1.0".to_owned(),
        seen_at: NOW,
    }
}

pub async fn an_agent_is_found_by_its_token_also_after_it_is_revoked(backend: &dyn Backend) {
    let (_, agents) = backend.open_agents().await;
    let token = add(&*agents, "frankfurt").await;
    let record = agents.agent(token.key().id()).await.unwrap().unwrap();
    assert_eq!(record.name, "frankfurt");
    assert_eq!(record.digest, token.key().digest());
    assert_eq!((record.revoked_at, record.drained_at), (None, None));
    assert_eq!(agents.agent("nobody").await.unwrap(), None);

    agents
        .revoke_agent("frankfurt", later(LEASE))
        .await
        .unwrap();
    let record = agents.agent(token.key().id()).await.unwrap().unwrap();
    assert_eq!(record.revoked_at, Some(later(LEASE)));
    let again = agents.revoke_agent("frankfurt", NOW).await;
    assert!(matches!(again, Err(StoreError::NotFound(_))), "{again:?}");
}

pub async fn the_name_of_an_agent_is_unique_until_it_is_revoked(backend: &dyn Backend) {
    let (_, agents) = backend.open_agents().await;
    let first = add(&*agents, "frankfurt").await;
    let other = AgentToken::generate().unwrap();
    let key = other.key();
    let bounds = AgentBounds::default();
    let twice = agents.add_agent("frankfurt", key.id(), key.digest(), &bounds, NOW);
    let twice = twice.await;
    assert!(matches!(twice, Err(StoreError::InUse(_))), "{twice:?}");
    agents.revoke_agent("frankfurt", NOW).await.unwrap();
    let second = add(&*agents, "frankfurt").await;
    add(&*agents, "dallas").await;
    let all = agents.agents().await.unwrap();
    let names: Vec<_> = all.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["dallas", "frankfurt", "frankfurt"]);
    let valid = |token: &AgentToken| {
        let record = all.iter().find(|agent| agent.id == token.key().id());
        record.unwrap().revoked_at.is_none()
    };
    assert!(!valid(&first) && valid(&second));
}

pub async fn an_agent_is_drained_until_it_is_resumed(backend: &dyn Backend) {
    let (_, agents) = backend.open_agents().await;
    let token = add(&*agents, "frankfurt").await;
    let drained_at = async || {
        let record = agents.agent(token.key().id()).await.unwrap();
        record.unwrap().drained_at
    };
    agents.drain_agent("frankfurt", true, NOW).await.unwrap();
    let again = agents.drain_agent("frankfurt", true, later(LEASE));
    again.await.unwrap();
    assert_eq!(drained_at().await, Some(NOW));
    agents.drain_agent("frankfurt", false, NOW).await.unwrap();
    assert_eq!(drained_at().await, None);
    let nobody = agents.drain_agent("nobody", true, NOW).await;
    assert!(matches!(nobody, Err(StoreError::NotFound(_))), "{nobody:?}");
}

pub async fn the_newest_presence_is_kept_for_a_day(backend: &dyn Backend) {
    let (_, agents) = backend.open_agents().await;
    let token = add(&*agents, "frankfurt").await;
    let first = presence("agent/x", Some(&token), "eu");
    agents.record_presence(first.clone()).await.unwrap();
    let embedded = presence("embedded-y", None, "us-tx");
    agents.record_presence(embedded.clone()).await.unwrap();
    assert_eq!(
        agents.presences(NOW).await.unwrap(),
        [first.clone(), embedded]
    );

    let again = AgentPresence {
        host_index: None,
        seen_at: later(LEASE),
        ..first
    };
    agents.record_presence(again.clone()).await.unwrap();
    let fresh = agents.presences(later(LEASE)).await.unwrap();
    assert_eq!(fresh, std::slice::from_ref(&again));

    let tomorrow = Timestamp(NOW.0 + PRESENCE_RETENTION_MS + 1);
    let late = AgentPresence {
        seen_at: tomorrow,
        ..again
    };
    agents.record_presence(late.clone()).await.unwrap();
    assert_eq!(agents.presences(Timestamp(0)).await.unwrap(), [late]);
    assert_eq!(agents.remove_presence(&single("agent/x")).await.unwrap(), 1);
    assert_eq!(agents.remove_presence(&single("agent/x")).await.unwrap(), 0);
    assert_eq!(agents.presences(Timestamp(0)).await.unwrap(), []);
}

pub async fn a_location_is_active_while_an_agent_may_work_there(backend: &dyn Backend) {
    let (_, agents) = backend.open_agents().await;
    let eu = add(&*agents, "frankfurt").await;
    let asia = add(&*agents, "singapore").await;
    for presence in [
        presence("embedded-y", None, "us-tx"),
        presence("agent/1", Some(&eu), "eu"),
        presence("agent/2", Some(&eu), "eu"),
        presence("agent/3", Some(&asia), "asia"),
    ] {
        agents.record_presence(presence).await.unwrap();
    }
    assert_eq!(
        agents.active_locations(NOW).await.unwrap(),
        ["asia", "eu", "us-tx"]
    );
    agents.drain_agent("frankfurt", true, NOW).await.unwrap();
    agents.revoke_agent("singapore", NOW).await.unwrap();
    assert_eq!(agents.active_locations(NOW).await.unwrap(), ["us-tx"]);
    agents.drain_agent("frankfurt", false, NOW).await.unwrap();
    assert_eq!(agents.active_locations(NOW).await.unwrap(), ["eu", "us-tx"]);
    let after = later(Duration::from_millis(1));
    assert_eq!(agents.active_locations(after).await.unwrap(), [""; 0]);
}

pub async fn an_attempt_is_held_until_it_is_finished_released_or_taken_over(backend: &dyn Backend) {
    let (store, agents) = backend.open_agents().await;
    accepted(&*store, &["a"]).await;
    assert_eq!(
        agents.attempt_state("a", 0).await.unwrap(),
        AttemptState::Lost
    );
    let first = lease(&*store, NOW).await.unwrap();
    let held = agents.attempt_state("a", first.attempt).await.unwrap();
    assert_eq!(held, AttemptState::Held(Box::new(first.clone())));

    let second = lease(&*store, later(LEASE)).await.unwrap();
    let lost = agents.attempt_state("a", first.attempt).await.unwrap();
    assert_eq!(lost, AttemptState::Lost, "taken over");
    store
        .release(&second, ReleaseReason::Returned(ReturnReason::Drained))
        .await
        .unwrap();
    let lost = agents.attempt_state("a", second.attempt).await.unwrap();
    assert_eq!(lost, AttemptState::Lost, "released");

    let third = lease(&*store, later(LEASE)).await.unwrap();
    store.finish(&third, measured()).await.unwrap();
    let done = agents.attempt_state("a", third.attempt).await.unwrap();
    assert_eq!(done, AttemptState::Finished);
    assert_eq!(
        agents.attempt_state("a", second.attempt).await.unwrap(),
        AttemptState::Lost
    );
    assert_eq!(
        agents.attempt_state("unknown", 1).await.unwrap(),
        AttemptState::Lost
    );
}

pub async fn running_leases_are_found_by_their_owner(backend: &dyn Backend) {
    let (store, agents) = backend.open_agents().await;
    accepted(&*store, &["a", "b", "c"]).await;
    let first = lease(&*store, NOW).await.unwrap();
    let second = lease(&*store, NOW).await.unwrap();
    let all = agents.running(None).await.unwrap();
    assert_eq!(all, [first.clone(), second.clone()]);
    let own = agents.running(Some(&first.owner)).await.unwrap();
    assert_eq!(own, [first.clone(), second.clone()], "they share a name");
    assert_eq!(agents.running(Some(&"agent/2".into())).await.unwrap(), []);
    store.finish(&first, measured()).await.unwrap();
    assert_eq!(agents.running(None).await.unwrap(), [second]);
}

pub async fn the_bounds_of_a_token_are_stored(backend: &dyn Backend) {
    let (_, agents) = backend.open_agents().await;
    let unbound = add(&*agents, "unbound").await;
    let bounds = AgentBounds {
        locations: Some(vec!["eu".to_owned(), "us-tx".to_owned()]),
        slots: Some(3),
    };
    let token = AgentToken::generate().unwrap();
    let key = token.key();
    let added = agents.add_agent("bound", key.id(), key.digest(), &bounds, NOW);
    added.await.unwrap();
    let record = agents.agent(key.id()).await.unwrap().unwrap();
    assert_eq!(record.bounds, bounds);
    assert!(record.bounds.allows_location("eu") && !record.bounds.allows_location("fr"));
    let other = agents.agent(unbound.key().id()).await.unwrap().unwrap();
    assert_eq!(other.bounds, AgentBounds::default());
    assert!(other.bounds.allows_location("anywhere"));

    for locations in [vec![], vec![String::new()], vec!["a,b".to_owned()]] {
        let bounds = AgentBounds {
            locations: Some(locations),
            slots: None,
        };
        let refused = agents.add_agent("odd", "odd", key.digest(), &bounds, NOW);
        assert!(matches!(refused.await, Err(StoreError::Refused(_))));
    }
}

fn limited(owner: &str, max_leases: u32) -> LeaseScope {
    LeaseScope {
        slots: Some(SlotLimit {
            token_id: "t".to_owned(),
            max_leases,
        }),
        ..LeaseScope::any_location(owner)
    }
}

pub async fn the_number_of_leases_is_limited_by_the_slots_of_a_token(backend: &dyn Backend) {
    let store = backend.open().await;
    accepted(&*store, &["a", "b", "c", "d"]).await;
    let take = async |owner: &str, now| store.lease(&limited(owner, 2), now, LEASE).await;
    let first = take("agent/t/p/0", NOW).await.unwrap().unwrap();
    take("agent/t/q/0", NOW).await.unwrap().unwrap();
    let refused = take("agent/t/p/1", NOW).await;
    assert!(
        matches!(refused, Err(StoreError::SlotsInUse(2))),
        "{refused:?}"
    );
    // An owner with a similar name has its own slots.
    let scope = LeaseScope::any_location("agent/tt/p/0");
    let other = store.lease(&scope, NOW, LEASE).await.unwrap().unwrap();
    store.finish(&other, measured()).await.unwrap();

    store.finish(&first, measured()).await.unwrap();
    let next = take("agent/t/p/1", NOW).await.unwrap().unwrap();
    let refused = take("agent/t/p/1", NOW).await;
    assert!(
        matches!(refused, Err(StoreError::SlotsInUse(2))),
        "empty queue"
    );
    // Expired leases do not count.
    let after = take("agent/t/r/0", later(LEASE)).await.unwrap().unwrap();
    assert_eq!(after.faults, 1, "{next:?} or the one beside it");
}

pub async fn concurrent_leases_do_not_exceed_the_slots_of_a_token(backend: &dyn Backend) {
    let names: Vec<String> = (0..24).map(|n| format!("audit-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let stores = [backend.open().await, backend.open().await];
    accepted(&*stores[0], &names).await;
    let leases = (0..24).map(|n| {
        let store = std::sync::Arc::clone(&stores[n % 2]);
        tokio::spawn(async move {
            let scope = limited(&format!("agent/t/p{n}/0"), 3);
            match store.lease(&scope, NOW, LEASE).await {
                Ok(lease) => lease.is_some(),
                Err(StoreError::SlotsInUse(3)) => false,
                Err(error) => panic!("{error}"),
            }
        })
    });
    let mut held = 0;
    for lease in leases.collect::<Vec<_>>() {
        held += u32::from(lease.await.unwrap());
    }
    assert_eq!(held, 3);
}
