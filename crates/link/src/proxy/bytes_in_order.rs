use std::collections::VecDeque;

/// Bytes on their way, in the order they came, in the pieces they came in.
#[derive(Debug, Default)]
pub(super) struct BytesInOrder {
    pieces: VecDeque<Vec<u8>>,
    /// Bytes of the first piece that are gone.
    taken: usize,
}

impl BytesInOrder {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.pieces.push_back(bytes.to_vec());
    }

    /// The next bytes, at most `most`; fewer where a piece ends.
    pub(super) fn pop(&mut self, most: usize) -> Option<Vec<u8>> {
        let first = self.pieces.front()?;
        if self.taken == 0 && first.len() <= most {
            return self.pieces.pop_front();
        }
        let end = (self.taken + most).min(first.len());
        let bytes = first[self.taken..end].to_vec();
        if end == first.len() {
            self.pieces.pop_front();
            self.taken = 0;
        } else {
            self.taken = end;
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
        fn what_goes_in_comes_out_in_order(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..20),
            takes in proptest::collection::vec(1usize..60, 1..20),
        ) {
            let mut bytes = BytesInOrder::default();
            pieces.iter().for_each(|p| bytes.push(p));
            let mut out = Vec::new();
            let mut takes = takes.iter().cycle();
            while let Some(piece) = takes.next().and_then(|most| bytes.pop(*most)) {
                out.extend(piece);
            }
            prop_assert_eq!(out, pieces.concat());
        }
    }
}
