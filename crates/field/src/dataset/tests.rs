use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use plumbline_engine::field::RecordOf;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::*;
use crate::HttpAnswer;

type Sent = Result<HttpAnswer, TransportError>;

/// Speaks the protocol as each test wants it. Remembers the questions.
struct Double {
    asked: Mutex<Vec<(String, Value)>>,
    answer: Box<dyn Fn(&Value) -> Sent + Send + Sync>,
    /// An answer leaves only when there is a permit.
    permits: Semaphore,
}

#[async_trait]
impl Transport for Double {
    async fn post(&self, url: &Url, body: String) -> Sent {
        let body: Value = serde_json::from_str(&body).unwrap();
        self.asked
            .lock()
            .unwrap()
            .push((url.to_string(), body.clone()));
        self.permits.acquire().await.unwrap().forget();
        (self.answer)(&body)
    }
}

struct Everybody;

#[async_trait]
impl Discretion for Everybody {
    async fn may_name(&self, url: &Url) -> bool {
        url.host_str() != Some("secret.example")
    }
}

/// Leaves one request each time there is a permit, and is asked again after five seconds otherwise.
struct Others {
    left: Semaphore,
    asked: AtomicI64,
}

#[async_trait]
impl Quota for Others {
    async fn take(&self) -> Result<(), Duration> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let left = self.left.try_acquire();
        left.map(|one| one.forget())
            .map_err(|_| Duration::from_secs(5))
    }
}

struct Rig {
    dataset: Dataset,
    double: Arc<Double>,
    others: Arc<Others>,
    now_ms: Arc<AtomicI64>,
}

/// 15 Nov 2026, 12:00 UTC.
const NOON_MS: i64 = 1_794_744_000_000;
const PLENTY: usize = 10_000;

fn rig(answer: impl Fn(&Value) -> Sent + Send + Sync + 'static) -> Rig {
    rig_with(PLENTY, answer)
}

fn rig_with(permits: usize, answer: impl Fn(&Value) -> Sent + Send + Sync + 'static) -> Rig {
    let double = Arc::new(Double {
        asked: Mutex::default(),
        answer: Box::new(answer),
        permits: Semaphore::new(permits),
    });
    let others = Arc::new(Others {
        left: Semaphore::new(PLENTY),
        asked: AtomicI64::new(0),
    });
    let now_ms = Arc::new(AtomicI64::new(NOON_MS));
    let clock = Arc::clone(&now_ms);
    let dataset = Dataset::new(
        Url::parse("https://double.example/below/").unwrap(),
        ApiKey::new("k+y/1").unwrap(),
        double.clone(),
        Arc::new(Everybody),
        others.clone(),
        Arc::new(move || clock.load(Ordering::SeqCst)),
    );
    Rig {
        dataset,
        double,
        others,
        now_ms,
    }
}

impl Rig {
    async fn ask(&self, url: &str) -> Result<FieldData, FieldReason> {
        let mut asked = self.dataset.begin(url, FormFactor::Phone);
        asked.ended().await;
        asked.so_far()
    }

    fn bodies(&self) -> Vec<Value> {
        let asked = self.double.asked.lock().unwrap();
        asked.iter().map(|(_, body)| body.clone()).collect()
    }

    fn count(&self, what: &str) -> u64 {
        let counts = self.dataset.counts();
        counts
            .iter()
            .find(|(name, _)| *name == what)
            .map_or(0, |(_, count)| *count)
    }
}

fn answer(status: u16, body: &Value) -> Sent {
    Ok(HttpAnswer {
        status,
        retry_after: None,
        body: body.to_string().into_bytes(),
    })
}

fn found(body: &Value) -> Sent {
    let mut key = body.clone();
    key.as_object_mut().unwrap().remove("formFactor");
    let metrics = json!({ "largest_contentful_paint": { "percentiles": { "p75": 2100 } } });
    answer(
        200,
        &json!({ "record": { "key": key, "metrics": metrics } }),
    )
}

fn missing() -> Sent {
    answer(
        404,
        &json!({ "error": { "code": 404, "message": "", "status": "NOT_FOUND" } }),
    )
}

fn only_origins(body: &Value) -> Sent {
    if body["origin"].is_string() {
        found(body)
    } else {
        missing()
    }
}

#[tokio::test]
async fn the_page_is_asked_for_first_and_with_the_key() {
    let rig = rig(found);
    let data = rig.ask("https://example.com/a?b#c").await.unwrap();
    assert_eq!(
        (data.record, data.subject.as_str()),
        (RecordOf::Url, "https://example.com/a")
    );
    assert_eq!(data.metrics.lcp.unwrap().p75, 2100.0);
    let asked = rig.double.asked.lock().unwrap();
    assert_eq!(
        *asked,
        [(
            "https://double.example/below/v1/records:queryRecord?key=k%2By%2F1".to_owned(),
            json!({ "url": "https://example.com/a", "formFactor": "PHONE" })
        )]
    );
}

#[tokio::test]
async fn an_unknown_page_has_its_origins_record_and_the_record_says_so() {
    let rig = rig(only_origins);
    let data = rig.ask("https://example.com/a").await.unwrap();
    assert_eq!(
        (data.record, data.subject.as_str()),
        (RecordOf::Origin, "https://example.com")
    );
    let again = rig.ask("https://example.com/b").await.unwrap();
    assert_eq!(again.record, RecordOf::Origin);
    assert_eq!(
        rig.bodies().len(),
        3,
        "the origin was asked about only once"
    );
}

#[tokio::test]
async fn what_is_missing_is_asked_for_once_a_day() {
    let rig = rig(|_| missing());
    for _ in 0..3 {
        assert_eq!(
            rig.ask("https://example.com/").await,
            Err(FieldReason::NotInDataset)
        );
    }
    assert_eq!(rig.bodies().len(), 2, "page and origin");
    assert_eq!((rig.count("NOT_IN_DATASET"), rig.count("cached")), (2, 4));
    rig.now_ms.store(NOON_MS + 16 * 3_600_000, Ordering::SeqCst);
    let _ = rig.ask("https://example.com/").await;
    assert_eq!(rig.bodies().len(), 4, "the dataset was updated at four");
}

#[tokio::test]
async fn nothing_is_sent_about_a_page_that_may_not_be_named() {
    let rig = rig(found);
    for url in ["https://secret.example/", "about:blank", "nonsense"] {
        assert_eq!(rig.ask(url).await, Err(FieldReason::NotPublic), "{url}");
    }
    assert_eq!(rig.bodies(), Vec::<Value>::new());
}

#[tokio::test]
async fn the_same_question_at_the_same_time_is_asked_once() {
    let rig = rig_with(0, found);
    let mut asked: Vec<_> = (0..20)
        .map(|_| rig.dataset.begin("https://example.com/", FormFactor::Phone))
        .collect();
    while rig.bodies().is_empty() || rig.count("shared") < 19 {
        tokio::task::yield_now().await;
    }
    rig.double.permits.add_permits(1);
    for asked in &mut asked {
        asked.ended().await;
        assert!(asked.so_far().is_ok());
    }
    assert_eq!(rig.bodies().len(), 1);
}

#[tokio::test]
async fn looking_does_not_wait_and_what_comes_late_is_there_for_the_next() {
    let rig = rig_with(0, found);
    let mut asked = rig.dataset.begin("https://example.com/", FormFactor::Phone);
    assert_eq!(asked.so_far(), Err(FieldReason::TimedOut));
    while rig.bodies().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(asked.so_far(), Err(FieldReason::TimedOut));
    rig.double.permits.add_permits(1);
    asked.ended().await;
    assert!(rig.ask("https://example.com/").await.is_ok());
    assert_eq!(rig.bodies().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_who_never_answers_is_waited_for_until_the_deadline_and_not_longer() {
    let rig = rig_with(0, found);
    let start = Instant::now();
    let asked = rig.ask("https://example.com/").await;
    assert_eq!(asked, Err(FieldReason::TimedOut));
    assert!(start.elapsed() <= QUESTION_TIME);
    assert_eq!(rig.bodies().len(), ATTEMPTS as usize);
}

#[tokio::test(start_paused = true)]
async fn a_fault_is_tried_again_and_forgotten_when_it_passes() {
    let times = Mutex::new(0);
    let rig = rig(move |body| {
        let mut times = times.lock().unwrap();
        *times += 1;
        match *times {
            1 => answer(503, &json!({})),
            2 => Err(TransportError::Unreachable("gone".to_owned())),
            _ => found(body),
        }
    });
    assert!(rig.ask("https://example.com/").await.is_ok());
    assert_eq!(rig.bodies().len(), 3);
    assert_eq!(rig.count("found"), 1);
}

#[tokio::test(start_paused = true)]
async fn what_goes_on_failing_is_left_alone_for_a_while() {
    let rig = rig(|_| answer(500, &json!({})));
    for number in 0..20 {
        let asked = rig.ask(&format!("https://example.com/{number}")).await;
        assert_eq!(asked, Err(FieldReason::Unavailable));
    }
    assert_eq!(rig.bodies().len(), 5, "then the circuit is open");
    sleep(Duration::from_secs(31)).await;
    let _ = rig.ask("https://example.com/").await;
    assert_eq!(rig.bodies().len(), 6, "one tries again");
}

#[tokio::test(start_paused = true)]
async fn being_told_to_wait_holds_everybody() {
    let rig = rig(|_| {
        Ok(HttpAnswer {
            status: 429,
            retry_after: Some("3600".to_owned()),
            body: Vec::new(),
        })
    });
    for number in 0..5 {
        let asked = rig.ask(&format!("https://example.com/{number}")).await;
        assert_eq!(asked, Err(FieldReason::Quota));
    }
    assert_eq!(rig.bodies().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_looks_while_the_quota_is_used_up_is_told_so() {
    let rig = rig(|_| answer(429, &json!({})));
    let asked = rig.dataset.begin("https://example.com/", FormFactor::Phone);
    while asked.so_far() == Err(FieldReason::TimedOut) {
        tokio::task::yield_now().await;
    }
    assert_eq!(asked.so_far(), Err(FieldReason::Quota));
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_quota_leaves_in_a_minute() {
    let rig = rig(found);
    let start = Instant::now();
    for number in 0..200 {
        let asked = rig.ask(&format!("https://example.com/{number}")).await;
        assert!(asked.is_ok());
        if number < 150 {
            assert_eq!(start.elapsed(), Duration::ZERO);
        }
    }
    assert!(start.elapsed() >= Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_others_have_used_up_is_waited_for_and_costs_no_try() {
    let rig = rig(found);
    rig.others.left.forget_permits(PLENTY);
    let start = Instant::now();
    let mut asked: Vec<_> = (0..20)
        .map(|number| {
            let url = format!("https://example.com/{number}");
            rig.dataset.begin(&url, FormFactor::Phone)
        })
        .collect();
    // More often than any question is tried.
    while start.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(rig.bodies(), Vec::<Value>::new());
    for asked in &asked {
        assert_eq!(asked.so_far(), Err(FieldReason::Quota));
    }
    let asked_for = rig.others.asked.load(Ordering::SeqCst);
    assert!(asked_for <= 7, "one asks for all, {asked_for} times");
    rig.others.left.add_permits(PLENTY);
    for asked in &mut asked {
        asked.ended().await;
        assert!(asked.so_far().is_ok());
    }
    assert_eq!(rig.bodies().len(), 20);
}

#[tokio::test(start_paused = true)]
async fn more_questions_than_can_be_answered_are_turned_away_at_once() {
    let rig = rig_with(0, found);
    let begun: Vec<_> = (0..400)
        .map(|number| {
            let url = format!("https://example.com/{number}");
            rig.dataset.begin(&url, FormFactor::Phone)
        })
        .collect();
    while rig.count("QUOTA") < 250 {
        tokio::task::yield_now().await;
    }
    let turned_away = begun
        .iter()
        .filter(|asked| asked.so_far() == Err(FieldReason::Quota));
    assert_eq!(turned_away.count(), 250);
}

#[tokio::test]
async fn a_refused_key_is_told_and_not_tried_with_every_audit() {
    let rig = rig(|_| {
        let details = json!([{ "reason": "API_KEY_INVALID" }]);
        answer(
            400,
            &json!({ "error": { "status": "INVALID_ARGUMENT", "details": details } }),
        )
    });
    for number in 0..5 {
        let asked = rig.ask(&format!("https://example.com/{number}")).await;
        assert_eq!(asked, Err(FieldReason::KeyRefused));
    }
    assert_eq!(rig.bodies().len(), 1);
}

#[tokio::test]
async fn what_cannot_be_read_is_a_bad_answer_and_not_remembered() {
    let rig = rig(|body| match body["url"].as_str() {
        Some("https://example.com/large") => Err(TransportError::TooLarge),
        _ => answer(200, &json!("{")),
    });
    for path in ["large", "broken"] {
        let asked = rig.ask(&format!("https://example.com/{path}")).await;
        assert_eq!(asked, Err(FieldReason::BadAnswer));
    }
    assert_eq!(rig.count("cached"), 0);
}

#[tokio::test]
async fn a_history_is_asked_for_alike() {
    let rig = rig(|body| {
        let Some(origin) = body["origin"].as_str() else {
            return missing();
        };
        let day = json!({ "year": 2026, "month": 11, "day": 1 });
        answer(
            200,
            &json!({ "record": {
                "key": { "origin": origin },
                "metrics": { "interaction_to_next_paint": { "percentilesTimeseries": { "p75s": [180] } } },
                "collectionPeriods": [{ "firstDate": day, "lastDate": day }],
            } }),
        )
    });
    let long = Duration::from_secs(30);
    let url = "https://example.com/a";
    let found = rig.dataset.history(url, FormFactor::Desktop, long).await;
    let history = found.unwrap();
    assert_eq!(
        (history.record, history.form_factor),
        (RecordOf::Origin, FormFactor::Desktop)
    );
    let asked = rig.double.asked.lock().unwrap();
    assert!(asked[0].0.contains("/v1/records:queryHistoryRecord?"));
}

#[tokio::test(start_paused = true)]
async fn a_history_is_not_waited_for_longer_than_said() {
    let rig = rig_with(0, found);
    let start = Instant::now();
    let soon = Duration::from_secs(2);
    let found = rig
        .dataset
        .history("https://example.com/", FormFactor::Phone, soon)
        .await;
    assert_eq!(found, Err(FieldReason::TimedOut));
    assert_eq!(start.elapsed(), soon);
}

#[test]
fn a_key_is_one_word_and_never_shown() {
    for text in ["", " ", "a b", "a\nb", "schlüssel"] {
        assert!(ApiKey::new(text).is_err(), "{text:?}");
    }
    let key = ApiKey::new(" secret\n").unwrap();
    assert_eq!(key.0, "secret");
    assert!(!format!("{key:?}").contains("secret"));
}
