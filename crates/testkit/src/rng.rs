//! Pseudo-random numbers from a seed, the same on every machine.

/// A stream of random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator. Different seeds give different streams.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from the range, which is not empty.
    pub fn within(&mut self, range: std::ops::Range<usize>) -> usize {
        range.start + (self.next() % (range.end - range.start) as u64) as usize
    }

    /// A number between 0 and 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True `times` times out of a hundred.
    pub fn percent(&mut self, times: usize) -> bool {
        self.within(0..100) < times
    }

    /// A random element of a slice, which is not empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.within(0..from.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_every_time() {
        let draw = |seed| (0..5).map(|_| Rng::new(seed).within(0..1000)).collect::<Vec<_>>();
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn every_number_comes_up() {
        let mut rng = Rng::new(1);
        let mut seen = [0; 6];
        (0..600).for_each(|_| seen[rng.within(0..6)] += 1);
        assert!(seen.iter().all(|times| (50..150).contains(times)), "{seen:?}");
    }
}
