//! A number that may have no limit.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest possible number of something. In JSON a number, or `null` for no limit.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(from = "Option<u64>", into = "Option<u64>")]
#[schemars(with = "Option<u64>")]
pub enum Bound {
    /// Never more than this.
    AtMost(u64),
    /// Nothing limits it.
    Unbounded,
}

impl Bound {
    pub(super) const ZERO: Self = Self::AtMost(0);
    pub(super) const ONE: Self = Self::AtMost(1);

    pub(super) fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::AtMost(a), Self::AtMost(b)) => Self::AtMost(a.saturating_add(b)),
            (Self::Unbounded, _) | (_, Self::Unbounded) => Self::Unbounded,
        }
    }

    /// Nothing, however often, is nothing.
    pub(super) fn times(self, other: Self) -> Self {
        match (self, other) {
            (Self::AtMost(0), _) | (_, Self::AtMost(0)) => Self::ZERO,
            (Self::AtMost(a), Self::AtMost(b)) => Self::AtMost(a.saturating_mul(b)),
            (Self::Unbounded, _) | (_, Self::Unbounded) => Self::Unbounded,
        }
    }
}

impl std::iter::Sum for Bound {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Self::plus)
    }
}

impl From<Option<u64>> for Bound {
    fn from(limit: Option<u64>) -> Self {
        limit.map_or(Self::Unbounded, Self::AtMost)
    }
}

impl From<Bound> for Option<u64> {
    fn from(bound: Bound) -> Self {
        match bound {
            Bound::AtMost(limit) => Some(limit),
            Bound::Unbounded => None,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(limit) => write!(f, "at most {limit}"),
            Self::Unbounded => f.write_str("no limit"),
        }
    }
}
