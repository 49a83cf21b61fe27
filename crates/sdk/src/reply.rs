//! The result of a call: a text for the model, an object for programs, and the refusal if it was refused.

use std::collections::BTreeMap;

use serde_json::Value;
use surehand_engine::{Outcome, ToolNames, render};

/// The reply to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The text for the model.
    pub text: String,
    /// The object for programs; its fields are those that the reference lists for each tool.
    pub result: Value,
    /// The refusal, if the call was refused.
    pub refusal: Option<RefusalReport>,
}

/// A refusal. Nothing was changed, and the report has everything that the model needs to try again.
#[derive(Debug, Clone, PartialEq)]
pub struct RefusalReport {
    /// The stable name of the reason, such as `stale`.
    pub code: &'static str,
    /// The path of the file; `None` if the refusal is not about a file.
    pub path: Option<String>,
    /// The lines to read again, with their current numbers.
    pub affected_ranges: Vec<LineRange>,
    /// For an edit by anchors: the current anchor for each that is out of date.
    pub remaps: BTreeMap<String, String>,
    /// The next step, as a short phrase.
    pub remedy: String,
    /// How often this exact call has been refused, including this time.
    pub repeat: u32,
    /// The text for the model. It shows the lines that changed, and those count as read.
    pub text: String,
    /// The whole refusal as an object for programs.
    pub details: Value,
}

/// A range of lines, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRange {
    /// The first line, from 1.
    pub start: u32,
    /// The last line, which is part of the range.
    pub end: u32,
}

impl Reply {
    pub(crate) fn of(outcome: &Outcome, names: &ToolNames) -> Self {
        let refusal = RefusalReport::of(outcome, names);
        Self { text: render::text(outcome, names), result: render::json(outcome, names), refusal }
    }
}

impl RefusalReport {
    /// `None` if the outcome is no refusal.
    pub(crate) fn of(outcome: &Outcome, names: &ToolNames) -> Option<Self> {
        let refused = outcome.result.as_ref().err()?;
        let refusal = &*refused.refusal;
        let range = |range: &surehand_engine::core::LineRange| LineRange { start: range.start.get(), end: range.end.get() };
        Some(Self {
            code: refusal.code().as_str(),
            path: refusal.path.clone(),
            affected_ranges: refusal.affected_ranges().ranges().iter().map(range).collect(),
            remaps: refusal.remaps().iter().map(|remap| (remap.from.to_string(), remap.to.to_string())).collect(),
            remedy: render::refusal::remedy(refusal, names),
            repeat: refused.repeat,
            text: render::text(outcome, names),
            details: render::json(outcome, names)["refusal"].take(),
        })
    }
}
