//! Pages are made away from the threads that answer requests, a few at a time.

use std::{sync::Arc, thread::available_parallelism};

use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::errors::Failure;

/// Bounds how many pages are made at a time: as many as there are cores, and at least this.
const AT_LEAST: usize = 2;

pub(crate) struct Renders(Arc<Semaphore>);

impl Default for Renders {
    fn default() -> Self {
        let cores = available_parallelism().map_or(AT_LEAST, |cores| cores.get().max(AT_LEAST));
        Self(Arc::new(Semaphore::new(cores)))
    }
}

impl Renders {
    /// Runs `work` on a thread of its own when it is its turn.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let turn = Arc::clone(&self.0)
            .acquire_owned()
            .await
            .map_err(Failure::unavailable)?;
        let made = spawn_blocking(move || {
            let made = work();
            // Held to the end of the work, even when nobody waits for it any more.
            drop(turn);
            made
        });
        made.await.map_err(Failure::internal)
    }

    /// Makes a page.
    pub(crate) async fn page<E: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static>(
        &self,
        make: impl FnOnce() -> Result<String, E> + Send + 'static,
    ) -> Result<axum::response::Html<String>, Failure> {
        let made = self.run(make).await?;
        Ok(axum::response::Html(made.map_err(Failure::internal)?))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn no_more_pages_are_made_at_a_time_than_there_are_turns() {
        let renders = Arc::new(Renders(Arc::new(Semaphore::new(1))));
        let (release, released) = mpsc::channel::<()>();
        let (began, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
        let first = tokio::spawn({
            let (renders, began) = (Arc::clone(&renders), began.clone());
            async move {
                let work = move || {
                    began.send(1).unwrap();
                    released.recv().unwrap();
                };
                renders.run(work).await.unwrap();
            }
        });
        assert_eq!(has_begun.recv().await, Some(1));
        let second = tokio::spawn({
            let renders = Arc::clone(&renders);
            async move { renders.run(move || began.send(2).unwrap()).await.unwrap() }
        });
        // The thread that answers is free all the while.
        tokio::task::yield_now().await;
        assert!(has_begun.try_recv().is_err());
        release.send(()).unwrap();
        first.await.unwrap();
        second.await.unwrap();
        assert_eq!(has_begun.recv().await, Some(2));
    }

    #[tokio::test]
    async fn a_panic_ends_at_the_page_that_caused_it() {
        let renders = Renders::default();
        let made = renders.run(|| -> () { panic!("a defect, on purpose") });
        assert!(matches!(made.await, Err(Failure::Internal(_))));
        assert!(renders.run(|| ()).await.is_ok());
    }
}
