//! Dice that fall the same way every time: what is generated from them is the same on every machine.

/// A stream of numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Other seeds give other streams.
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

    /// Whether something happens that happens so many times out of a hundred.
    pub fn percent(&mut self, times: usize) -> bool {
        self.within(0..100) < times
    }

    /// One of several, of which there is at least one.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.within(0..from.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_fall_the_same_way_every_time() {
        let throw = |seed| (0..5).map(|_| Dice::new(seed).within(0..1000)).collect::<Vec<_>>();
        assert_eq!(throw(7), throw(7));
        assert_ne!(throw(7), throw(8));
    }

    #[test]
    fn every_side_comes_up() {
        let mut dice = Dice::new(1);
        let mut seen = [0; 6];
        (0..600).for_each(|_| seen[dice.within(0..6)] += 1);
        assert!(seen.iter().all(|times| (50..150).contains(times)), "{seen:?}");
    }
}
