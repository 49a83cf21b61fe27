//! Updates the benchmark page of the documentation. The measurements are between two marks; the text around them is
//! written by hand and stays.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::bench::chart;
use crate::bench::report::Report;

/// The next run replaces the text between these marks.
const BEGIN: &str = "<!-- measured by cargo xtask bench -->";
const END: &str = "<!-- end of what is measured -->";

/// Writes the page and its chart. Returns their paths.
pub(crate) fn write(report: &Report) -> Result<[PathBuf; 2]> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let docs = docs.canonicalize().with_context(|| docs.display().to_string())?;
    let [page, picture] = ["benchmarks.md", "benchmarks.svg"].map(|name| docs.join(name));
    let before = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    let after = replace(&before, &report.to_markdown()).with_context(|| format!("{}: no marks", page.display()))?;
    fs::write(&page, after).with_context(|| page.display().to_string())?;
    let note = format!(
        "median, logarithmic: shorter is faster · floor: bare system calls{} · {}",
        report.mark_of_sync(),
        report.machine
    );
    let drawn = chart::draw("Round trip of a call over MCP", &note, &chart::panels(report));
    fs::write(&picture, drawn).with_context(|| picture.display().to_string())?;
    Ok([page, picture])
}

/// The page with new measurements; `None` if it has no marks.
fn replace(page: &str, measured: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", measured.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let page = format!("# Title\n\n{BEGIN}\nold\n{END}\n\n## By hand\n");
        let expected = format!("# Title\n\n{BEGIN}\n\nnew\n\n{END}\n\n## By hand\n");
        assert_eq!(replace(&page, "new\n"), Some(expected.clone()));
        assert_eq!(replace(&expected, "new"), Some(expected));
    }

    #[test]
    fn a_page_without_marks_is_left_alone() {
        assert_eq!(replace("# Title\n", "new"), None);
        assert_eq!(replace(&format!("{END}\n{BEGIN}\n"), "new"), None);
    }

    #[test]
    fn the_page_has_its_marks() {
        let page = include_str!("../../../../docs/benchmarks.md");
        assert!(replace(page, "new").is_some());
    }
}
