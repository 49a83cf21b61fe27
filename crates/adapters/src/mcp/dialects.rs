//! The dialects of editing, and which tools belong to which.

use surehand_engine::tools;

/// A way to say what is to be edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Exact text: `edit_file` and `multi_edit`.
    Text,
    /// Anchored lines: `edit_lines`.
    Lines,
    /// Patches: `apply_patch`.
    Patch,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 3] = [Dialect::Text, Dialect::Lines, Dialect::Patch];

    /// The dialect that a tool belongs to; most belong to none.
    fn of(tool: &str) -> Option<Self> {
        match tool {
            "edit_file" | "multi_edit" => Some(Dialect::Text),
            "edit_lines" => Some(Dialect::Lines),
            "apply_patch" => Some(Dialect::Patch),
            _ => None,
        }
    }
}

/// The tools of these dialects, and those of none, in the order of the table.
pub(super) fn tools_of(dialects: &[Dialect]) -> Vec<&'static tools::Tool> {
    let is_offered = |tool: &&tools::Tool| Dialect::of(tool.name).is_none_or(|dialect| dialects.contains(&dialect));
    tools::TABLE.iter().filter(is_offered).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(dialects: &[Dialect], left_out: &[&str]) {
        let offered: Vec<&str> = tools_of(dialects).iter().map(|tool| tool.name).collect();
        let missing: Vec<&str> = tools::TABLE.iter().map(|tool| tool.name).filter(|name| !offered.contains(name)).collect();
        assert_eq!(missing, left_out);
    }

    #[test]
    fn a_dialect_that_is_not_chosen_leaves_out_its_tools_only() {
        check(&Dialect::ALL, &[]);
        check(&[Dialect::Text], &["edit_lines", "apply_patch"]);
        check(&[Dialect::Patch, Dialect::Lines], &["edit_file", "multi_edit"]);
        check(&[], &["edit_file", "multi_edit", "edit_lines", "apply_patch"]);
    }
}
