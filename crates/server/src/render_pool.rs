//! Renders pages on blocking threads, a few at a time, so that they do not delay other requests.

use std::{sync::Arc, thread::available_parallelism};

use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::errors::Failure;

/// The smallest number of concurrent renderings; otherwise there are as many as cores.
const MIN_CONCURRENT: usize = 2;

/// Limits the number of pages that are rendered concurrently.
pub(crate) struct RenderPool(Arc<Semaphore>);

impl Default for RenderPool {
    fn default() -> Self {
        let cores =
            available_parallelism().map_or(MIN_CONCURRENT, |cores| cores.get().max(MIN_CONCURRENT));
        Self(Arc::new(Semaphore::new(cores)))
    }
}

impl RenderPool {
    /// Runs `work` on a blocking thread, after waiting for a permit.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let permit = Arc::clone(&self.0)
            .acquire_owned()
            .await
            .map_err(Failure::unavailable)?;
        let task = spawn_blocking(move || {
            let output = work();
            // Held to the end of the work, even if the request was dropped.
            drop(permit);
            output
        });
        task.await.map_err(Failure::internal)
    }

    /// Renders a page.
    pub(crate) async fn page<E: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static>(
        &self,
        render: impl FnOnce() -> Result<String, E> + Send + 'static,
    ) -> Result<axum::response::Html<String>, Failure> {
        let html = self.run(render).await?;
        Ok(axum::response::Html(html.map_err(Failure::internal)?))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn no_more_pages_are_rendered_at_a_time_than_there_are_permits() {
        let render_pool = Arc::new(RenderPool(Arc::new(Semaphore::new(1))));
        let (release, released) = mpsc::channel::<()>();
        let (began, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
        let first = tokio::spawn({
            let (render_pool, began) = (Arc::clone(&render_pool), began.clone());
            async move {
                let work = move || {
                    began.send(1).unwrap();
                    released.recv().unwrap();
                };
                render_pool.run(work).await.unwrap();
            }
        });
        assert_eq!(has_begun.recv().await, Some(1));
        let second = tokio::spawn({
            let render_pool = Arc::clone(&render_pool);
            async move {
                render_pool
                    .run(move || began.send(2).unwrap())
                    .await
                    .unwrap()
            }
        });
        // The thread that serves requests is free all the while.
        tokio::task::yield_now().await;
        assert!(has_begun.try_recv().is_err());
        release.send(()).unwrap();
        first.await.unwrap();
        second.await.unwrap();
        assert_eq!(has_begun.recv().await, Some(2));
    }

    #[tokio::test]
    async fn a_panic_ends_at_the_page_that_caused_it() {
        let render_pool = RenderPool::default();
        let result = render_pool.run(|| -> () { panic!("deliberate") });
        assert!(matches!(result.await, Err(Failure::Internal(_))));
        assert!(render_pool.run(|| ()).await.is_ok());
    }
}
