//! Tests how patches are parsed, and that both formats lead from one text to another or to a refusal, but never to a
//! third text.

use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::{
    line_map::{LineMap, splice},
    refusal::Cause,
    text::Text,
};

/// A parsed patch as text: one line for each file, chunk, header (`@`) and row.
pub(super) fn said(patch: &str) -> String {
    let mut said = String::new();
    for file in parse(patch).unwrap().files {
        match file {
            FilePatch::Add { path, content } => writeln!(said, "add {path} {content:?}").unwrap(),
            FilePatch::Delete { path } => writeln!(said, "delete {path}").unwrap(),
            FilePatch::Update { path, move_to, chunks } => {
                let move_to = move_to.map(|path| format!(" -> {path}")).unwrap_or_default();
                writeln!(said, "update {path}{move_to}").unwrap();
                chunks.iter().for_each(|chunk| said_chunk(&mut said, chunk));
            }
        }
    }
    said
}

fn said_chunk(said: &mut String, chunk: &PatchChunk<'_>) {
    let mut line = "  chunk".to_owned();
    if chunk.stated != StatedPlace::Nowhere {
        write!(line, " {:?}", chunk.stated).unwrap();
    }
    if chunk.last_newline != LastNewline::Unsaid {
        write!(line, " {:?}", chunk.last_newline).unwrap();
    }
    writeln!(said, "{line}").unwrap();
    chunk.headers.iter().for_each(|header| writeln!(said, "    @ {header}").unwrap());
    for row in &chunk.rows {
        let (kind, text) = match row {
            PatchRow::Keep(text) => (' ', text),
            PatchRow::Remove(text) => ('-', text),
            PatchRow::Add(text) => ('+', text),
        };
        writeln!(said, "    {kind}{text}").unwrap();
    }
}

#[track_caller]
pub(super) fn check_patch(patch: &str, read_as: &str) {
    assert_eq!(said(patch), read_as);
}

/// The error of a patch, after the number of its line.
#[track_caller]
pub(super) fn fault(patch: &str) -> String {
    let bad = parse(patch).unwrap_err();
    format!("{}: {}", bad.line, bad.why)
}

/// The text after applying the chunks of a patch for one file.
pub(super) fn apply(content: &str, patch: &str) -> Result<String, ChunkRefused> {
    let text = Text::new(content.as_bytes().to_vec()).unwrap();
    let patch = parse(patch).unwrap_or_else(|bad| panic!("{bad}\n{patch}"));
    let [FilePatch::Update { chunks, .. }] = &patch.files[..] else { panic!("one update: {patch:?}") };
    let splices = patch_splices(&text, chunks)?;
    assert!(splices.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start), "in order: {splices:?}");
    Ok(splice(&text, &splices).0)
}

#[test]
fn an_error_names_both_formats() {
    for neither in ["", "\n", "hello", "*** Update File: a\n-x\n", "@@ -1 +1 @@\n-x\n+y\n", "```\n```"] {
        assert!(fault(neither).ends_with(
            ": a patch is either `*** Begin Patch` … `*** End Patch`, or a unified diff with `--- ` and `+++ ` lines; this begins like neither"
        ));
    }
    assert_eq!(parse("\n\nhello").unwrap_err().line, 3);
}

/// A change with the lines around it, by the indexes of their first lines.
struct Run<'t> {
    old_start: usize,
    new_start: usize,
    rows: Vec<PatchRow<'t>>,
}

fn runs<'t>(before: &'t Text, after: &'t Text, context: usize) -> Vec<Run<'t>> {
    let old: Vec<&str> = before.full_lines().collect();
    let new: Vec<&str> = after.full_lines().collect();
    let map = LineMap::between(before, after);
    let mut runs: Vec<Run<'t>> = Vec::new();
    // The old lines up to here are in the runs, or above them.
    let mut old_at = 0;
    for hunk in map.hunks() {
        let shared = hunk.before.start - old_at;
        if runs.is_empty() || shared > 2 * context {
            if let Some(last) = runs.last_mut() {
                last.rows.extend(old[old_at..old_at + context].iter().copied().map(PatchRow::Keep));
            }
            let lead = shared.min(context);
            runs.push(Run { old_start: hunk.before.start - lead, new_start: hunk.after.start - lead, rows: Vec::new() });
            old_at = hunk.before.start - lead;
        }
        let run = runs.last_mut().unwrap();
        run.rows.extend(old[old_at..hunk.before.start].iter().copied().map(PatchRow::Keep));
        run.rows.extend(old[hunk.before.clone()].iter().copied().map(PatchRow::Remove));
        run.rows.extend(new[hunk.after.clone()].iter().copied().map(PatchRow::Add));
        old_at = hunk.before.end;
    }
    if let Some(last) = runs.last_mut() {
        last.rows.extend(old[old_at..].iter().copied().take(context).map(PatchRow::Keep));
    }
    runs
}

/// A row as a diff has it: with the ending of its line, or with the newline mark.
fn rendered_row(row: &PatchRow<'_>) -> String {
    let (kind, line) = match row {
        PatchRow::Keep(line) => (' ', line),
        PatchRow::Remove(line) => ('-', line),
        PatchRow::Add(line) => ('+', line),
    };
    if line.ends_with('\n') { format!("{kind}{line}") } else { format!("{kind}{line}\n\\ No newline at end of file\n") }
}

fn unified(before: &Text, after: &Text, context: usize) -> String {
    let mut diff = "--- a/f\n+++ b/f\n".to_owned();
    for run in runs(before, after, context) {
        let (old, new) = (
            run.rows.iter().filter(|row| row.before().is_some()).count(),
            run.rows.iter().filter(|row| row.after().is_some()).count(),
        );
        // For an empty side, a header gives the line above it.
        let start = |start: usize, count: usize| if count == 0 { start } else { start + 1 };
        writeln!(diff, "@@ -{},{old} +{},{new} @@", start(run.old_start, old), start(run.new_start, new)).unwrap();
        diff.extend(run.rows.iter().map(rendered_row));
    }
    diff
}

fn envelope(before: &Text, after: &Text) -> String {
    let mut patch = "*** Begin Patch\n*** Update File: f\n".to_owned();
    for run in runs(before, after, 3) {
        patch.push_str("@@\n");
        patch.extend(run.rows.iter().map(rendered_row).map(|row| row.replace("\\ No newline at end of file\n", "")));
    }
    patch + "*** End Patch\n"
}

fn text(content: &str) -> Text {
    Text::new(content.as_bytes().to_vec()).unwrap()
}

/// Texts of few different lines, so that they repeat; some look like parts of a patch.
fn content() -> impl Strategy<Value = String> {
    let line = prop_oneof![4 => "[ab]", 1 => "|-- a|[+]{2} a|@@"];
    (prop::collection::vec(line, 0..40), prop::bool::ANY).prop_map(|(lines, ends)| {
        let content: String = lines.iter().map(|line| format!("{line}\n")).collect();
        if ends { content } else { content.trim_end_matches('\n').to_owned() }
    })
}

/// Two texts that have much in common.
fn versions() -> impl Strategy<Value = (String, String)> {
    let edits = prop::collection::vec((0usize..40, 0usize..3, "([abc]\n){0,3}"), 1..5);
    (content(), edits, prop::bool::ANY).prop_map(|(before, edits, ends)| {
        let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
        for (at, gone, new) in edits {
            let at = at.min(lines.len());
            let end = (at + gone).min(lines.len());
            lines.splice(at..end, new.lines().map(str::to_owned));
        }
        let after: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let after = if ends { after } else { after.trim_end_matches('\n').to_owned() };
        (before, after)
    })
}

fn pairs() -> impl Strategy<Value = (String, String)> {
    prop_oneof![2 => versions(), 1 => (content(), content())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_unified_diff_leads_to_the_other_text((before, after) in pairs(), context in 0usize..4) {
        prop_assume!(before != after);
        let diff = unified(&text(&before), &text(&after), context);
        prop_assert_eq!(apply(&before, &diff), Ok(after), "{}", diff);
    }

    #[test]
    fn line_endings_are_those_of_the_file((before, after) in pairs(), named in prop::bool::ANY) {
        let with_returns = |content: &str| content.replace('\n', "\r\n");
        // A file without any line ending does not show which ending to use.
        prop_assume!(before != after && before.contains('\n'));
        let diff = if named {
            unified(&text(&with_returns(&before)), &text(&with_returns(&after)), 3)
        } else {
            unified(&text(&before), &text(&after), 3)
        };
        prop_assert_eq!(apply(&with_returns(&before), &diff), Ok(with_returns(&after)), "{}", diff);
    }

    #[test]
    fn an_envelope_leads_to_the_other_text_or_is_ambiguous((before, after) in pairs()) {
        // It cannot describe the final newline, so both texts have one, or neither has.
        let (before, after) = (before.trim_end_matches('\n'), after.trim_end_matches('\n'));
        prop_assume!(before != after);
        let ended = |content: &str| if content.is_empty() { String::new() } else { format!("{content}\n") };
        let patch = envelope(&text(&ended(before)), &text(&ended(after)));
        let check = |before: &str, after: &str| {
            match apply(before, &patch) {
                Ok(result) => prop_assert_eq!(result, after, "{}", patch),
                Err(refused) => prop_assert!(matches!(refused.cause, Cause::Ambiguous { .. }), "{:?}\n{}", refused, patch),
            }
            Ok(())
        };
        check(&ended(before), &ended(after))?;
        // A file without lines has no last line that could lack a newline.
        if !before.is_empty() {
            check(before, after)?;
        }
    }

    /// Another writer inserted lines above, so the numbers are off. One chunk that fits in only one place shows it.
    #[test]
    fn a_diff_for_lines_that_moved_is_never_applied_elsewhere((before, after) in versions(), above in "(x\n){1,4}") {
        let (before, after) = (text(&before), text(&after));
        let lines: Vec<&str> = before.full_lines().collect();
        let stands_once = |run: &Run<'_>| {
            let old: Vec<&str> = run.rows.iter().filter_map(|row| row.before()).collect();
            !old.is_empty() && lines.windows(old.len()).filter(|lines| *lines == old).count() == 1
        };
        prop_assume!(runs(&before, &after, 3).iter().any(stands_once));
        if let Ok(result) = apply(&format!("{above}{}", before.as_str()), &unified(&before, &after, 3)) {
            prop_assert_eq!(result, format!("{above}{}", after.as_str()));
        }
    }

    #[test]
    fn parse_never_panics(patch in any::<String>()) {
        let _ = parse(&patch);
    }

    #[test]
    fn parse_never_panics_on_what_is_nearly_a_patch(
        (before, after) in pairs(), git in prop::bool::ANY, cut in 0usize..400, len in 0usize..40,
        with in "([-+ @*\\\\\"\n\r]|[0-9]|,|a/|\\*\\*\\* |@@ |/dev/null|```|<<EOF){0,6}",
    ) {
        let (before, after) = (text(&before), text(&after));
        let patch = if git {
            format!("diff --git \"a/f\\303\\251\" b/f\nsimilarity index 9%\nrename from f\nrename to \"g\"\n{}", unified(&before, &after, 2))
        } else {
            envelope(&before, &after)
        };
        let at = (0..=cut.min(patch.len())).rev().find(|at| patch.is_char_boundary(*at)).unwrap();
        let to = (at..=(at + len).min(patch.len())).rev().find(|to| patch.is_char_boundary(*to)).unwrap();
        let patch = format!("{}{with}{}", &patch[..at], &patch[to..]);
        if let Ok(patch) = parse(&patch) {
            for file in &patch.files {
                if let FilePatch::Update { chunks, .. } = file {
                    let _ = patch_splices(&before, chunks);
                }
            }
        }
    }
}
