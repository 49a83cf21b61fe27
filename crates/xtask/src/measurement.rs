//! Measured durations of the compared servers, and their percentiles and ratios.

use std::time::Duration;

use anyhow::Result;

/// One of the compared servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerId {
    /// The server under test.
    Surehand,
    Floor,
    /// A server that people would pick instead, by its place among them.
    Peer(usize),
}

impl ServerId {
    /// All servers, with this many peers.
    fn all(peers: usize) -> impl Iterator<Item = Self> {
        [Self::Surehand, Self::Floor].into_iter().chain((0..peers).map(Self::Peer))
    }
}

/// A value for each server.
#[derive(Clone, Debug, Default)]
pub(crate) struct PerServer<T> {
    /// The one of the server under test.
    pub surehand: T,
    /// The one of the bare server.
    pub floor: T,
    /// Those of the peers.
    pub peers: Vec<T>,
}

impl<T> PerServer<T> {
    /// Makes one value for each server.
    pub(crate) fn of(peers: usize, mut make: impl FnMut(ServerId) -> Result<T>) -> Result<Self> {
        let peers = (0..peers).map(|peer| make(ServerId::Peer(peer))).collect::<Result<_>>()?;
        Ok(Self { surehand: make(ServerId::Surehand)?, floor: make(ServerId::Floor)?, peers })
    }

    /// The value of a server.
    pub(crate) fn at(&self, server: ServerId) -> &T {
        match server {
            ServerId::Surehand => &self.surehand,
            ServerId::Floor => &self.floor,
            ServerId::Peer(peer) => &self.peers[peer],
        }
    }

    /// The value of a server, mutably.
    pub(crate) fn at_mut(&mut self, server: ServerId) -> &mut T {
        match server {
            ServerId::Surehand => &mut self.surehand,
            ServerId::Floor => &mut self.floor,
            ServerId::Peer(peer) => &mut self.peers[peer],
        }
    }

    /// All of them: Surehand's, the floor's, the peers'.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        [&self.surehand, &self.floor].into_iter().chain(&self.peers)
    }

    /// Applies `reduce` to each value.
    pub(crate) fn map<U>(&self, reduce: impl Fn(&T) -> U) -> PerServer<U> {
        PerServer { surehand: reduce(&self.surehand), floor: reduce(&self.floor), peers: self.peers.iter().map(reduce).collect() }
    }

    /// All values with their servers.
    pub(crate) fn by_server(&self) -> impl Iterator<Item = (ServerId, &T)> {
        ServerId::all(self.peers.len()).zip(self.iter())
    }

    /// The order of the servers in a round. It rotates, so that no server always runs after the same other one and its
    /// caches.
    pub(crate) fn order(&self, round: usize) -> Vec<ServerId> {
        let mut servers: Vec<_> = ServerId::all(self.peers.len()).collect();
        let first = round % servers.len();
        servers.rotate_left(first);
        servers
    }
}

impl PerServer<Duration> {
    /// The fastest peer: its place and its time.
    pub(crate) fn best_peer(&self) -> Option<(usize, Duration)> {
        self.peers.iter().copied().enumerate().min_by_key(|&(_, time)| time)
    }
}

/// The percentiles of many calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    pub p50: Duration,
    /// One call in twenty takes longer than this.
    pub p95: Duration,
    /// How many calls were measured.
    pub calls: usize,
}

impl Summary {
    /// Reduces durations in any order; there must be at least one.
    pub(crate) fn of(durations: &[Duration]) -> Self {
        let mut sorted = durations.to_vec();
        sorted.sort_unstable();
        Self { p50: percentile(&sorted, 50), p95: percentile(&sorted, 95), calls: sorted.len() }
    }
}

/// The median of durations in any order; there must be at least one.
pub(crate) fn median(durations: &[Duration]) -> Duration {
    Summary::of(durations).p50
}

/// The smallest duration that at least `percent` of the sorted ones do not exceed.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    *sorted.get(rank - 1).expect("every measurement makes at least one call")
}

/// How many times as long `a` is as `b`.
pub(crate) fn ratio(a: Duration, b: Duration) -> f64 {
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
    fn everybody_goes_first_in_turn() {
        use ServerId::{Floor, Peer, Surehand};
        let each = PerServer { surehand: (), floor: (), peers: vec![()] };
        assert_eq!(each.order(0), [Surehand, Floor, Peer(0)]);
        assert_eq!(each.order(1), [Floor, Peer(0), Surehand]);
        assert_eq!(each.order(2), [Peer(0), Surehand, Floor]);
        assert_eq!(each.order(3), each.order(0));
    }

    #[test]
    fn without_peers_the_two_take_turns() {
        let each = PerServer::<()>::default();
        assert_eq!(each.order(0), [ServerId::Surehand, ServerId::Floor]);
        assert_eq!(each.order(1), [ServerId::Floor, ServerId::Surehand]);
    }

    #[test]
    fn the_best_peer_is_the_fastest() {
        let times = |peers: &[u64]| PerServer {
            peers: peers.iter().map(|&n| Duration::from_micros(n)).collect(),
            ..PerServer::default()
        };
        assert_eq!(times(&[9, 4, 7]).best_peer(), Some((1, Duration::from_micros(4))));
        assert_eq!(times(&[]).best_peer(), None);
    }
}
