//! A bar chart for a terminal.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Glyphs {
    Blocks,
    /// Plain ASCII, with three steps per row.
    Ascii,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Canvas {
    pub width: usize,
    pub height: usize,
    pub glyphs: Glyphs,
}

const STEPS: usize = 8;

/// One bar per value, or per group of values if there are more values than columns. `bars` values take the whole width,
/// and `top` takes the whole height, so that several plots can share one scale. The first row is the top.
pub(super) fn bars(values: &[usize], bars: usize, top: usize, canvas: Canvas) -> Vec<String> {
    let columns = columns(values, bars, canvas.width);
    let steps: Vec<usize> = columns.iter().map(|value| steps(*value, top, canvas.height)).collect();
    let row = |row: usize| {
        let below = (canvas.height - 1 - row) * STEPS;
        let line: String = steps.iter().map(|steps| canvas.glyphs.of(steps.saturating_sub(below).min(STEPS))).collect();
        line.trim_end().to_owned()
    };
    (0..canvas.height).map(row).collect()
}

/// The value of each column. Bars are as wide as the width allows.
fn columns(values: &[usize], bars: usize, width: usize) -> Vec<usize> {
    let bars = bars.max(values.len());
    let value = |column: usize| {
        let first = column * bars / width;
        let end = ((column + 1) * bars / width).max(first + 1).min(values.len());
        values.get(first..end)?.iter().copied().max()
    };
    (0..width).map_while(value).collect()
}

/// The height of a value. Any value above zero is visible.
fn steps(value: usize, top: usize, height: usize) -> usize {
    let all = height * STEPS;
    let steps = (value * all + top / 2) / top.max(1);
    steps.clamp(usize::from(value > 0), all)
}

impl Glyphs {
    fn of(self, steps: usize) -> char {
        match self {
            Self::Blocks => [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][steps],
            Self::Ascii => [' ', '.', '.', '.', ':', ':', ':', ':', '#'][steps],
        }
    }

    /// The left axis, the corner, the bottom axis.
    pub(super) fn frame(self) -> [char; 3] {
        match self {
            Self::Blocks => ['│', '└', '─'],
            Self::Ascii => ['|', '+', '-'],
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(values: &[usize], (count, top): (usize, usize), (width, height): (usize, usize), glyphs: Glyphs, expected: &[&str]) {
        assert_eq!(bars(values, count, top, Canvas { width, height, glyphs }), expected);
    }

    #[test]
    fn bars_are_as_high_as_their_values() {
        check(&[8, 4, 0, 1, 16], (5, 16), (5, 2), Glyphs::Blocks, &["    █", "█▄ ▁█"]);
        check(&[8, 4, 0, 1, 16], (5, 16), (5, 2), Glyphs::Ascii, &["    #", "#: .#"]);
    }

    #[test]
    fn what_is_small_is_seen_and_what_is_too_large_is_cut() {
        check(&[1, 5000], (2, 1000), (2, 1), Glyphs::Blocks, &["▁█"]);
        check(&[0, 0], (2, 0), (2, 1), Glyphs::Blocks, &[""]);
        check(&[3], (1, 0), (1, 1), Glyphs::Blocks, &["█"]);
    }

    #[test]
    fn bars_take_the_columns_that_there_are() {
        check(&[1, 2], (2, 2), (7, 1), Glyphs::Blocks, &["▄▄▄▄███"]);
        check(&[1, 2], (4, 2), (8, 1), Glyphs::Blocks, &["▄▄██"]);
        check(&[1, 2, 1, 1, 1, 2], (6, 2), (3, 1), Glyphs::Blocks, &["█▄█"]);
        check(&[1, 2, 1, 1], (6, 2), (3, 1), Glyphs::Blocks, &["█▄"]);
        check(&[], (6, 2), (3, 1), Glyphs::Blocks, &[""]);
    }

    proptest! {
        #[test]
        fn a_plot_stays_on_its_canvas(
            values in proptest::collection::vec(0..9999usize, 0..50),
            count in 0..60usize,
            (width, height) in (0..40usize, 1..9usize),
        ) {
            let rows = bars(&values, count, 5000, Canvas { width, height, glyphs: Glyphs::Blocks });
            prop_assert_eq!(rows.len(), height);
            prop_assert!(rows.iter().all(|row| row.chars().count() <= width));
        }
    }
}
