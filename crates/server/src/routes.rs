//! A list of routes, each with its handler and the time that it may take.

use std::{collections::HashMap, time::Duration};

use axum::{Router, handler::Handler, routing};

use crate::state::SharedState;

/// A router that also lists the methods and paths of its routes, and how much longer than others
/// some of them may take.
#[derive(Default)]
pub(crate) struct Routes {
    pub(crate) router: Router<SharedState>,
    pub(crate) listed: Vec<(&'static str, &'static str)>,
    pub(crate) extra_times: ExtraTimes,
}

/// The time that a route may take besides the deadline of all requests, by path.
pub(crate) type ExtraTimes = HashMap<&'static str, Duration>;

impl Routes {
    pub(crate) fn get<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, SharedState>,
    ) -> Self {
        self.route("get", path, routing::get(handler))
    }

    pub(crate) fn post<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, SharedState>,
    ) -> Self {
        self.route("post", path, routing::post(handler))
    }

    pub(crate) fn put<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, SharedState>,
    ) -> Self {
        self.route("put", path, routing::put(handler))
    }

    pub(crate) fn delete<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, SharedState>,
    ) -> Self {
        self.route("delete", path, routing::delete(handler))
    }

    /// Lets the path of the last route take longer than others, because it waits on purpose or
    /// receives a large body.
    pub(crate) fn extra_time(mut self, time: Duration) -> Self {
        if let Some((_, path)) = self.listed.last() {
            self.extra_times.insert(path, time);
        }
        self
    }

    fn route(
        mut self,
        method: &'static str,
        path: &'static str,
        handler: routing::MethodRouter<SharedState>,
    ) -> Self {
        self.listed.push((method, path));
        self.router = self.router.route(path, handler);
        self
    }
}
