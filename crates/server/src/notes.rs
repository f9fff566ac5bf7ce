//! What a handler learns about its request and the front door has to know: who was counted how, and
//! which audit it was about.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::request::Parts;

use crate::rate::Turn;

/// Travels with the request; the door keeps a copy.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Noted>>);

#[derive(Default)]
pub(crate) struct Noted {
    pub(crate) turn: Option<Turn>,
    /// A tracking or audit id that is known to be one.
    pub(crate) audit: Option<String>,
}

impl Notes {
    /// Of a request that came through no door there is nobody to read them.
    pub(crate) fn of(parts: &Parts) -> Self {
        parts.extensions.get().cloned().unwrap_or_default()
    }

    pub(crate) fn turn(&self, turn: Option<Turn>) {
        self.lock().turn = turn;
    }

    pub(crate) fn audit(&self, id: &str) {
        self.lock().audit = Some(id.to_owned());
    }

    pub(crate) fn take(&self) -> Noted {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
