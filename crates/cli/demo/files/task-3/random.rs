//! Numbers that look random and repeat exactly for the same seed.

/// SplitMix64: a few lines, any seed is fine, and good enough to place food.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator that gives the same numbers for the same seed, on every machine.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn next_bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// One of the items, or nothing when there are none.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        let count = items.len() as u128;
        // The high half of the product is spread evenly over 0..count, without a division.
        let index = (u128::from(self.next_bits()) * count) >> 64;
        items.get(index as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_test_values_come_out() {
        let mut random = Random::new(1_234_567);
        let bits = [random.next_bits(), random.next_bits()];
        assert_eq!(bits, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn another_seed_gives_other_numbers() {
        assert_ne!(Random::new(1).next_bits(), Random::new(2).next_bits());
    }

    #[test]
    fn every_item_is_picked_sooner_or_later() {
        let mut random = Random::new(1);
        let mut seen = [false; 6];
        for _ in 0..200 {
            if let Some(index) = random.pick(&[0, 1, 2, 3, 4, 5]) {
                seen[index] = true;
            }
        }
        assert_eq!(seen, [true; 6]);
    }

    #[test]
    fn nothing_is_picked_from_nothing() {
        assert_eq!(Random::new(1).pick::<u8>(&[]), None);
    }
}
