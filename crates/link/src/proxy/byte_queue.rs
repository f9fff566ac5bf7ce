use std::collections::VecDeque;

/// A queue of bytes that keeps the chunks in which they were added.
#[derive(Debug, Default)]
pub(super) struct ByteQueue {
    chunks: VecDeque<Vec<u8>>,
    /// Number of bytes of the first chunk that have been removed.
    removed: usize,
}

impl ByteQueue {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.chunks.push_back(bytes.to_vec());
    }

    /// Removes and returns the next bytes: at most `max`, and fewer at the end of a chunk.
    pub(super) fn pop(&mut self, max: usize) -> Option<Vec<u8>> {
        let first = self.chunks.front()?;
        if self.removed == 0 && first.len() <= max {
            return self.chunks.pop_front();
        }
        let end = (self.removed + max).min(first.len());
        let bytes = first[self.removed..end].to_vec();
        if end == first.len() {
            self.chunks.pop_front();
            self.removed = 0;
        } else {
            self.removed = end;
        }
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_are_removed_in_the_order_in_which_they_were_added(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..20),
            sizes in proptest::collection::vec(1usize..60, 1..20),
        ) {
            let mut queue = ByteQueue::default();
            chunks.iter().for_each(|chunk| queue.push(chunk));
            let mut removed = Vec::new();
            let mut sizes = sizes.iter().cycle();
            while let Some(bytes) = sizes.next().and_then(|max| queue.pop(*max)) {
                removed.extend(bytes);
            }
            prop_assert_eq!(removed, chunks.concat());
        }
    }
}
