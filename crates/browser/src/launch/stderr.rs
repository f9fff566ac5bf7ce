use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;

const LINES: usize = 12;
const LINE_BYTES: usize = 300;
/// A longer line is taken for several, so that none takes more memory than this.
const READ_BYTES: u64 = 4096;

/// The last words of a browser: read always, so that it never blocks, kept for an error message.
#[derive(Clone)]
pub(crate) struct StderrTail {
    lines: Arc<Mutex<VecDeque<String>>>,
}

impl StderrTail {
    pub(super) fn follow(stderr: OwnedFd) -> std::io::Result<Self> {
        let mut reader = BufReader::new(pipe::Receiver::from_owned_fd(stderr)?);
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&lines);
        tokio::spawn(async move {
            let mut line = Vec::new();
            while let Ok(1..) = (&mut reader)
                .take(READ_BYTES)
                .read_until(b'\n', &mut line)
                .await
            {
                let shown = &line[..line.len().min(LINE_BYTES)];
                let text = String::from_utf8_lossy(shown).trim().to_owned();
                line.clear();
                let mut lines = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if !text.is_empty() {
                    lines.push_back(text);
                }
                if lines.len() > LINES {
                    lines.pop_front();
                }
            }
        });
        Ok(Self { lines })
    }

    pub(crate) fn text(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect::<Vec<_>>().join("\n")
    }
}
