//! What a measurement leaves behind: durations of the two servers, reduced to percentiles and a ratio.

use std::time::Duration;

use anyhow::Result;

/// One of the two servers that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The server under test.
    Surehand,
    /// The bare server.
    Floor,
}

/// Something that both servers have.
#[derive(Clone, Debug, Default)]
pub struct Pair<T> {
    /// The one of the server under test.
    pub surehand: T,
    /// The one of the bare server.
    pub floor: T,
}

impl<T> Pair<T> {
    /// Makes one for each side.
    pub fn of(mut make: impl FnMut(Side) -> Result<T>) -> Result<Self> {
        Ok(Self { surehand: make(Side::Surehand)?, floor: make(Side::Floor)? })
    }

    /// The one of a side.
    pub fn side(&self, side: Side) -> &T {
        match side {
            Side::Surehand => &self.surehand,
            Side::Floor => &self.floor,
        }
    }

    /// The one of a side, to be changed.
    pub fn side_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Surehand => &mut self.surehand,
            Side::Floor => &mut self.floor,
        }
    }

    /// What `reduce` makes of each.
    pub fn map<U>(&self, reduce: impl Fn(&T) -> U) -> Pair<U> {
        Pair { surehand: reduce(&self.surehand), floor: reduce(&self.floor) }
    }
}

/// Which server goes first in a round: they take turns, so that neither always finds the caches of the other.
pub fn order(round: usize) -> [Side; 2] {
    if round.is_multiple_of(2) { [Side::Surehand, Side::Floor] } else { [Side::Floor, Side::Surehand] }
}

/// The percentiles of many calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The median.
    pub p50: Duration,
    /// What one call in twenty exceeds.
    pub p95: Duration,
    /// How many calls were measured.
    pub calls: usize,
}

impl Summary {
    /// Reduces durations in any order; there must be at least one.
    pub fn of(durations: &[Duration]) -> Self {
        let mut sorted = durations.to_vec();
        sorted.sort_unstable();
        Self { p50: percentile(&sorted, 50), p95: percentile(&sorted, 95), calls: sorted.len() }
    }
}

/// The median of durations in any order; there must be at least one.
pub fn median(durations: &[Duration]) -> Duration {
    Summary::of(durations).p50
}

/// The smallest duration that at least `percent` of the sorted ones do not exceed.
pub fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    *sorted.get(rank - 1).expect("every measurement makes at least one call")
}

/// How many times as long `a` is as `b`.
pub fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(micros: &[u64], p50: u64, p95: u64) {
        let durations: Vec<_> = micros.iter().map(|&n| Duration::from_micros(n)).collect();
        let expected = Summary { p50: Duration::from_micros(p50), p95: Duration::from_micros(p95), calls: micros.len() };
        assert_eq!(Summary::of(&durations), expected);
    }

    #[test]
    fn a_percentile_is_one_of_the_measured_values() {
        check(&[7], 7, 7);
        check(&[3, 1, 2], 2, 3);
        check(&[4, 3, 2, 1], 2, 4);
        check(&(1..=100).rev().collect::<Vec<_>>(), 50, 95);
    }

    #[test]
    fn the_servers_take_turns_in_going_first() {
        assert_eq!(order(0), [Side::Surehand, Side::Floor]);
        assert_eq!(order(1), [Side::Floor, Side::Surehand]);
    }
}
