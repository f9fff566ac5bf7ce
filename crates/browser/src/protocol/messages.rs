//! Reads the browser's messages, which are separated by NUL and whose size depends on the page.

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// The result of reading a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadResult {
    /// The buffer contains a message.
    Message,
    /// The message is larger than allowed. The buffer is empty, and the rest of the message has not
    /// been read.
    TooLarge,
    /// The pipe was closed.
    End,
}

/// Reads the next message into `message`, without the NUL at its end.
pub(super) async fn read_message(
    reader: &mut (impl AsyncBufRead + Unpin),
    message: &mut Vec<u8>,
    max_bytes: usize,
) -> std::io::Result<ReadResult> {
    message.clear();
    let limit = u64::try_from(max_bytes + 1).unwrap_or(u64::MAX);
    if (&mut *reader).take(limit).read_until(0, message).await? == 0 {
        return Ok(ReadResult::End);
    }
    if message.last() == Some(&0) {
        message.pop();
    } else if message.len() > max_bytes {
        *message = Vec::new();
        return Ok(ReadResult::TooLarge);
    }
    Ok(ReadResult::Message)
}

/// Reads until the pipe is closed and discards everything, so that the writer is not blocked.
pub(super) async fn discard_all(reader: &mut (impl AsyncBufRead + Unpin)) {
    while let Ok(buffer) = reader.fill_buf().await {
        let length = buffer.len();
        if length == 0 {
            return;
        }
        reader.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    #[tokio::test]
    async fn messages_up_to_the_limit_are_read_and_larger_ones_discarded() {
        // With a small buffer, messages arrive in several parts.
        let mut reader = BufReader::with_capacity(3, &b"abc\0\0abcde\0abcdefghijklm\0z\0"[..]);
        let mut message = Vec::new();
        for expected in ["abc", "", "abcde"] {
            let result = read_message(&mut reader, &mut message, 5).await.unwrap();
            assert_eq!(
                (result, message.as_slice()),
                (ReadResult::Message, expected.as_bytes())
            );
        }
        let too_large = read_message(&mut reader, &mut message, 5).await.unwrap();
        assert_eq!((too_large, message.capacity()), (ReadResult::TooLarge, 0));
        discard_all(&mut reader).await;
        let end = read_message(&mut reader, &mut message, 5).await.unwrap();
        assert_eq!(end, ReadResult::End);
    }

    #[tokio::test]
    async fn a_message_may_end_with_the_pipe() {
        let mut message = Vec::new();
        let mut reader = BufReader::new(&b"abcdef"[..]);
        let result = read_message(&mut reader, &mut message, 9).await.unwrap();
        assert_eq!(
            (result, message.as_slice()),
            (ReadResult::Message, &b"abcdef"[..])
        );
    }
}
