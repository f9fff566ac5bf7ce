use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;

const MAX_LINES: usize = 12;
const MAX_LINE_BYTES: usize = 300;
/// Maximum number of bytes that are read at once. A longer line is treated as several, which limits
/// the memory for one.
const MAX_READ_BYTES: u64 = 4096;

/// The last lines of a browser's standard error, for error messages. It is read continuously, so
/// that the browser never blocks.
#[derive(Clone)]
pub(crate) struct StderrTail {
    lines: Arc<Mutex<VecDeque<String>>>,
}

impl StderrTail {
    pub(super) fn follow(stderr: OwnedFd) -> std::io::Result<Self> {
        let mut reader = BufReader::new(pipe::Receiver::from_owned_fd(stderr)?);
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let shared_lines = Arc::clone(&lines);
        tokio::spawn(async move {
            let mut line = Vec::new();
            while let Ok(1..) = (&mut reader)
                .take(MAX_READ_BYTES)
                .read_until(b'\n', &mut line)
                .await
            {
                let truncated = &line[..line.len().min(MAX_LINE_BYTES)];
                let text = String::from_utf8_lossy(truncated).trim().to_owned();
                line.clear();
                let mut lines = shared_lines.lock();
                if !text.is_empty() {
                    lines.push_back(text);
                }
                if lines.len() > MAX_LINES {
                    lines.pop_front();
                }
            }
        });
        Ok(Self { lines })
    }

    pub(crate) fn text(&self) -> String {
        let lines = self.lines.lock();
        lines.iter().cloned().collect::<Vec<_>>().join("\n")
    }
}
