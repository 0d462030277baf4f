//! Random numbers that can be had again.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// SplitMix64: small, quick, and good enough for everything but secrets.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Others every time.
    pub(super) fn unpredictable() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }

    /// At least 0 and less than 1.
    pub(super) fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        // 53 bits are what a double has room for.
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}
