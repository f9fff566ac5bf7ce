use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plumbline_catalog::FormFactor;
use plumbline_engine::field::{FieldData, FieldHistory, FieldReason};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};
use url::Url;

use crate::answer::{Answer, Found, Meaning, meaning, retry_after};
use crate::cache::Cache;
use crate::outside::{Clock, Discretion, Quota, Transport, TransportError};
use crate::pace::{Pace, Turn};
use crate::question::{About, Question};

/// How long one request may take.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// How long a question is pursued, waits included. Longer than most visits, and than the quota's minute: what
/// comes too late for one audit is there for the next.
const QUESTION_TIME: Duration = Duration::from_secs(90);
const ATTEMPTS: u32 = 3;
/// Questions under way at a time: what the quota answers in a minute.
const MOST_AT_A_TIME: usize = crate::pace::QUOTA;

/// The operator's key to the API. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

#[derive(Debug, thiserror::Error)]
#[error("a key is one word of visible ASCII characters")]
pub struct KeyError;

impl ApiKey {
    pub fn new(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let is_word = (1..=512).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        is_word.then(|| Self(text.to_owned())).ok_or(KeyError)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// The Chrome UX Report, as far as anybody here needs it. Clones are the same one.
#[derive(Clone)]
pub struct Dataset(Arc<Inner>);

struct Inner {
    base: Url,
    key: ApiKey,
    transport: Arc<dyn Transport>,
    discretion: Arc<dyn Discretion>,
    quota: Arc<dyn Quota>,
    /// Held by who asks for a turn: what the first is told holds for those behind it.
    turns: tokio::sync::Mutex<()>,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    cache: Cache,
    pace: Pace,
    /// Questions under way: who asks the same waits for the same answer.
    asking: HashMap<Question, watch::Receiver<Progress>>,
    counts: BTreeMap<&'static str, u64>,
}

/// How far a question is.
#[derive(Debug, Clone)]
enum Progress {
    /// With what holds it up, where something does.
    Pending(Option<FieldReason>),
    Done(Answer),
}

/// A question that was begun.
pub struct Asked {
    progress: watch::Receiver<Progress>,
    /// As the dataset is asked for it; none for what is no web address.
    page: Option<Question>,
}

impl Asked {
    /// What is known by now, without waiting for more.
    pub fn so_far(&self) -> Result<FieldData, FieldReason> {
        match known(&self.progress)? {
            Found::Data(data) => Ok((*data).clone()),
            Found::History(_) => Err(FieldReason::BadAnswer),
        }
    }

    /// Whether asking about `url` would be the same question.
    pub fn is_about(&self, url: &str) -> bool {
        let same = |page: &Question| {
            let url = Url::parse(url).ok()?;
            let [other, _] = Question::both(page.about, &url, page.form_factor)?;
            Some(other == *page)
        };
        self.page.as_ref().and_then(same).unwrap_or(false)
    }

    /// Returns when there is nothing more to wait for.
    pub async fn ended(&mut self) {
        // A sender that is gone has said all it will.
        let _ = self
            .progress
            .wait_for(|p| matches!(p, Progress::Done(_)))
            .await;
    }
}

fn known(progress: &watch::Receiver<Progress>) -> Answer {
    match &*progress.borrow() {
        Progress::Done(answer) => answer.clone(),
        Progress::Pending(held_up_by) => Err(held_up_by.unwrap_or(FieldReason::TimedOut)),
    }
}

impl Dataset {
    /// `base` is where `v1/…` is below.
    pub fn new(
        base: Url,
        key: ApiKey,
        transport: Arc<dyn Transport>,
        discretion: Arc<dyn Discretion>,
        quota: Arc<dyn Quota>,
        clock: Clock,
    ) -> Self {
        Self(Arc::new(Inner {
            base,
            key,
            transport,
            discretion,
            quota,
            turns: tokio::sync::Mutex::default(),
            clock,
            state: Mutex::default(),
        }))
    }

    /// Begins to ask for the page's record, else its origin's. Does not wait; what comes too late for who
    /// asked is kept for who asks next.
    pub fn begin(&self, url: &str, form_factor: FormFactor) -> Asked {
        self.look_up(About::Now, url, form_factor)
    }

    /// The page's history, else its origin's, waiting no longer than `at_most`.
    pub async fn history(
        &self,
        url: &str,
        form_factor: FormFactor,
        at_most: Duration,
    ) -> Result<FieldHistory, FieldReason> {
        let mut asked = self.look_up(About::History, url, form_factor);
        let _ = tokio::time::timeout(at_most, asked.ended()).await;
        match known(&asked.progress)? {
            Found::History(history) => Ok((*history).clone()),
            Found::Data(_) => Err(FieldReason::BadAnswer),
        }
    }

    /// Questions since the process began, by what became of them.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let state = self.0.state();
        state
            .counts
            .iter()
            .map(|(what, count)| (*what, *count))
            .collect()
    }

    fn look_up(&self, about: About, url: &str, form_factor: FormFactor) -> Asked {
        let (sender, receiver) = watch::channel(Progress::Pending(None));
        let questions = Url::parse(url)
            .ok()
            .and_then(|url| Some((Question::both(about, &url, form_factor)?, url)));
        let page = questions.as_ref().map(|([page, _], _)| page.clone());
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move {
            let answer = match questions {
                None => Err(FieldReason::NotPublic),
                Some((questions, url)) => inner.ask_in_turn(questions, &url, &sender).await,
            };
            sender.send_replace(Progress::Done(answer));
        });
        Asked {
            progress: receiver,
            page,
        }
    }
}

impl Inner {
    /// The page; where it is not in the dataset, its origin.
    async fn ask_in_turn(
        self: &Arc<Self>,
        questions: [Question; 2],
        url: &Url,
        told: &watch::Sender<Progress>,
    ) -> Answer {
        let may_name = tokio::time::timeout(REQUEST_TIME, self.discretion.may_name(url)).await;
        if !may_name.unwrap_or(false) {
            self.count("NOT_PUBLIC");
            return Err(FieldReason::NotPublic);
        }
        let [page, origin] = questions;
        match self.follow(page, told).await {
            Err(FieldReason::NotInDataset | FieldReason::Rejected) => {
                self.follow(origin, told).await
            }
            answer => answer,
        }
    }

    /// Waits for one question, and passes on what holds it up.
    async fn follow(
        self: &Arc<Self>,
        question: Question,
        told: &watch::Sender<Progress>,
    ) -> Answer {
        let mut progress = self.ask(question);
        loop {
            let now = progress.borrow_and_update().clone();
            match now {
                Progress::Done(answer) => return answer,
                pending => told.send_replace(pending),
            };
            if progress.changed().await.is_err() {
                // Who was asking is gone without an answer: a fault of ours.
                return Err(FieldReason::Unavailable);
            }
        }
    }

    /// One question, asked once however many want to know.
    fn ask(self: &Arc<Self>, question: Question) -> watch::Receiver<Progress> {
        let now_ms = (self.clock)();
        let mut state = self.state();
        if let Some(answer) = state.cache.get(&question, now_ms) {
            state.count("cached");
            return watch::channel(Progress::Done(answer)).1;
        }
        if let Some(asking) = state.asking.get(&question).cloned() {
            state.count("shared");
            return asking;
        }
        if state.asking.len() >= MOST_AT_A_TIME {
            state.count(FieldReason::Quota.as_str());
            return watch::channel(Progress::Done(Err(FieldReason::Quota))).1;
        }
        let (sender, receiver) = watch::channel(Progress::Pending(None));
        state.asking.insert(question.clone(), receiver.clone());
        drop(state);
        let inner = Arc::clone(self);
        tokio::spawn(async move {
            let under_way = UnderWay {
                inner: &inner,
                question: &question,
            };
            let answer = inner.pursue(&question, &sender).await;
            inner.note(&question, &answer);
            // Noted before it is no longer under way: nobody asks in between.
            drop(under_way);
            sender.send_replace(Progress::Done(answer));
        });
        receiver
    }

    fn note(&self, question: &Question, answer: &Answer) {
        let now_ms = (self.clock)();
        let mut state = self.state();
        let outcome = answer.as_ref().map_or_else(|r| r.as_str(), |_| "found");
        state.count(outcome);
        if matches!(
            answer,
            Ok(_) | Err(FieldReason::NotInDataset | FieldReason::Rejected)
        ) {
            state.cache.keep(question.clone(), answer.clone(), now_ms);
        }
    }

    /// Sends until there is an answer, it is no use, or the time is over.
    async fn pursue(&self, question: &Question, told: &watch::Sender<Progress>) -> Answer {
        let deadline = Instant::now() + QUESTION_TIME;
        let mut trouble = FieldReason::TimedOut;
        for _ in 0..ATTEMPTS {
            self.wait_for_turn(deadline, told).await?;
            let by = deadline.min(Instant::now() + REQUEST_TIME);
            let sent = timeout_at(by, self.send(question)).await;
            trouble = match sent.unwrap_or(Err(Trouble::Late)) {
                Ok(answer) => return answer,
                Err(trouble) => self.suffer(&trouble),
            };
            if matches!(trouble, FieldReason::BadAnswer | FieldReason::KeyRefused) {
                break;
            }
            told.send_replace(Progress::Pending(Some(trouble)));
        }
        Err(trouble)
    }

    async fn wait_for_turn(
        &self,
        deadline: Instant,
        told: &watch::Sender<Progress>,
    ) -> Result<(), FieldReason> {
        loop {
            let turn = timeout_at(deadline, self.turn()).await;
            match turn.map_err(|_| FieldReason::Quota)? {
                Turn::Go => return Ok(()),
                Turn::Closed(reason) => return Err(reason),
                Turn::Wait(until, reason) if until >= deadline => return Err(reason),
                Turn::Wait(until, reason) => {
                    told.send_replace(Progress::Pending(Some(reason)));
                    sleep_until(until).await;
                }
            }
        }
    }

    /// Of our own pace, and then of what others leave of the quota.
    async fn turn(&self) -> Turn {
        let _first = self.turns.lock().await;
        let turn = self.state().pace.turn(Instant::now());
        if turn != Turn::Go {
            return turn;
        }
        match self.quota.take().await {
            Ok(()) => Turn::Go,
            Err(wait) => self.state().pace.held_back(Instant::now(), wait),
        }
    }

    async fn send(&self, question: &Question) -> Result<Answer, Trouble> {
        let mut url = self.base.clone();
        let path = format!("{}/{}", url.path().trim_end_matches('/'), question.path());
        url.set_path(&path);
        url.query_pairs_mut()
            .clear()
            .append_pair("key", &self.key.0);
        let body = question.body().to_string();
        let answer = self.transport.post(&url, body).await?;
        let wait = answer.retry_after.as_deref();
        let wait = wait.and_then(|text| retry_after(text, (self.clock)()));
        match meaning(question, answer.status, &answer.body) {
            Meaning::Settled(answer) => {
                self.state().pace.answered();
                Ok(answer)
            }
            Meaning::KeyRefused => Err(Trouble::KeyRefused),
            Meaning::TooManyRequests => Err(Trouble::TooMany(wait)),
            Meaning::Failed => Err(Trouble::Failed(answer.status, wait)),
            Meaning::Nonsense(what) => Err(Trouble::Nonsense(what)),
        }
    }

    /// Lets everybody who asks know of the trouble, and says what to call it.
    fn suffer(&self, trouble: &Trouble) -> FieldReason {
        tracing::warn!(%trouble, "field data could not be had");
        let (now, mut state) = (Instant::now(), self.state());
        let reason = match trouble {
            Trouble::Late => FieldReason::TimedOut,
            Trouble::Failed(..) | Trouble::Unreachable(_) => FieldReason::Unavailable,
            Trouble::TooMany(_) => FieldReason::Quota,
            Trouble::KeyRefused => FieldReason::KeyRefused,
            Trouble::Nonsense(_) => FieldReason::BadAnswer,
        };
        match trouble {
            Trouble::TooMany(wait) => state.pace.too_many(now, *wait),
            Trouble::KeyRefused => state.pace.refused(now),
            Trouble::Failed(_, wait) => state.pace.failed(now, reason, *wait),
            _ => state.pace.failed(now, reason, None),
        }
        reason
    }

    fn count(&self, what: &'static str) {
        self.state().count(what);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }
}

/// Takes a question off the list of those under way, whatever became of it.
struct UnderWay<'a> {
    inner: &'a Inner,
    question: &'a Question,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.inner.state().asking.remove(self.question);
    }
}

/// Why one request came to nothing.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("no answer in time")]
    Late,
    #[error("not reachable: {0}")]
    Unreachable(String),
    #[error("answered with {0}")]
    Failed(u16, Option<Duration>),
    #[error("the quota is used up")]
    TooMany(Option<Duration>),
    #[error("the key is not accepted")]
    KeyRefused,
    #[error("not understood: {0}")]
    Nonsense(&'static str),
}

impl From<TransportError> for Trouble {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::Unreachable(why) => Self::Unreachable(why),
            TransportError::TooLarge => Self::Nonsense("larger than any answer"),
        }
    }
}

#[cfg(test)]
mod tests;
