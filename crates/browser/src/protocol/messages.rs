//! The browser's messages as they arrive: separated by NUL, and of whatever size a page makes them.

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The buffer holds a message.
    Message,
    /// The message is larger than allowed. Nothing of it is kept, and its rest has not been read.
    TooLarge,
    /// There is nothing more.
    End,
}

/// Reads the next message into `message`, without the NUL at its end.
pub(super) async fn next(
    reader: &mut (impl AsyncBufRead + Unpin),
    message: &mut Vec<u8>,
    max_bytes: usize,
) -> std::io::Result<Next> {
    message.clear();
    let limit = u64::try_from(max_bytes + 1).unwrap_or(u64::MAX);
    if (&mut *reader).take(limit).read_until(0, message).await? == 0 {
        return Ok(Next::End);
    }
    if message.last() == Some(&0) {
        message.pop();
    } else if message.len() > max_bytes {
        *message = Vec::new();
        return Ok(Next::TooLarge);
    }
    Ok(Next::Message)
}

/// Reads until there is nothing more, and keeps nothing: whoever writes must not be held up.
pub(super) async fn drain_all(reader: &mut (impl AsyncBufRead + Unpin)) {
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
    async fn messages_are_read_whole_up_to_the_limit_and_not_kept_beyond_it() {
        // A small buffer, so that messages come in several parts.
        let mut reader = BufReader::with_capacity(3, &b"abc\0\0abcde\0abcdefghijklm\0z\0"[..]);
        let mut message = Vec::new();
        for expected in ["abc", "", "abcde"] {
            let next = next(&mut reader, &mut message, 5).await.unwrap();
            assert_eq!(
                (next, message.as_slice()),
                (Next::Message, expected.as_bytes())
            );
        }
        let too_large = next(&mut reader, &mut message, 5).await.unwrap();
        assert_eq!((too_large, message.capacity()), (Next::TooLarge, 0));
        drain_all(&mut reader).await;
        let end = next(&mut reader, &mut message, 5).await.unwrap();
        assert_eq!(end, Next::End);
    }

    #[tokio::test]
    async fn a_pipe_may_end_in_a_message() {
        let mut message = Vec::new();
        let mut reader = BufReader::new(&b"abcdef"[..]);
        let next = next(&mut reader, &mut message, 9).await.unwrap();
        assert_eq!((next, message.as_slice()), (Next::Message, &b"abcdef"[..]));
    }
}
