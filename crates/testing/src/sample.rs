//! The share of a long list of cases that a run of the tests plays.
//!
//! `cargo xtask test` sets `ATOMIC_TEST_SAMPLE` to a seed, and a long test then plays about a tenth
//! of its cases; without the variable it plays all of them.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// One case of this many is played.
const PARTS: usize = 10;

/// Which cases are played.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    seed: Option<u64>,
}

impl Sample {
    /// Reads `ATOMIC_TEST_SAMPLE`.
    pub fn from_env() -> Self {
        let seed = std::env::var("ATOMIC_TEST_SAMPLE").ok();
        let seed = seed.map(|seed| seed.parse().expect("ATOMIC_TEST_SAMPLE is a number"));
        Self { seed }
    }

    /// Number of cases of which one is played: 1 or 10.
    pub fn share(self) -> usize {
        if self.seed.is_some() { PARTS } else { 1 }
    }

    /// Whether the case with this index is played. Of every ten consecutive cases one is, not always
    /// at the same distance, because tests treat odd and even cases in different ways.
    pub fn contains(self, index: usize) -> bool {
        let Some(seed) = self.seed else { return true };
        let mut hasher = DefaultHasher::new();
        (seed, index / PARTS).hash(&mut hasher);
        index % PARTS == (hasher.finish() % PARTS as u64) as usize
    }

    /// Returns the cases of a list that are played, at least one.
    pub fn of<T>(self, cases: Vec<T>) -> Vec<T> {
        let first = (0..cases.len()).find(|index| self.contains(*index)).unwrap_or(0);
        let is_played = |index: usize| self.contains(index) || index == first;
        let indexed = cases.into_iter().enumerate();
        indexed.filter(|(index, _)| is_played(*index)).map(|(_, case)| case).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Sample;

    #[test]
    fn every_tenth_case_is_played_and_another_seed_plays_other_cases() {
        let played = |seed| Sample { seed }.of((0..200).collect::<Vec<usize>>());
        assert_eq!(played(None).len(), 200);
        let (one, other) = (played(Some(1)), played(Some(2)));
        assert_eq!((one.len(), other.len()), (20, 20));
        assert_ne!(one, other);
        assert_eq!(one, played(Some(1)));
        let odd = one.iter().filter(|case| *case % 2 == 1).count();
        assert!((4..=16).contains(&odd), "{one:?}");
        // Every case is played for some seed.
        let mut all: Vec<usize> = (0..200).flat_map(|seed| played(Some(seed))).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 200);
    }

    #[test]
    fn of_a_short_list_one_case_is_played() {
        for seed in 0..50 {
            assert_eq!(Sample { seed: Some(seed) }.of(vec!['a', 'b']).len(), 1);
        }
    }
}
