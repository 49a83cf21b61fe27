//! A difference as people and other programs read it: a unified diff.

use crate::{
    change::{Hunk, LineMap},
    content::Content,
    lines::LineNo,
    path::RelPath,
    text::{Ending, Text},
};

/// Lines of context.
const CONTEXT: usize = 3;

/// One file before and after, as `git diff` would show it. Empty when nothing changed.
pub fn unified(before: (&RelPath, Option<&Content>), after: (&RelPath, Option<&Content>)) -> String {
    if before == after {
        return String::new();
    }
    let mut out = format!("diff --git a/{} b/{}\n", before.0, after.0);
    match (before.1, after.1) {
        (None, _) => out.push_str("new file mode 100644\n"),
        (_, None) => out.push_str("deleted file mode 100644\n"),
        _ if before.0 != after.0 => out.push_str(&format!("rename from {}\nrename to {}\n", before.0, after.0)),
        _ => {}
    }
    if before.1 == after.1 {
        return out;
    }
    let name = |side: char, (path, content): (&RelPath, Option<&Content>)| match content {
        Some(_) => format!("{side}/{path}"),
        None => "/dev/null".to_owned(),
    };
    let empty = Text::of(String::new()).expect("nothing is text");
    let text = |content: Option<&Content>| content.map_or(Some(empty.clone()), |content| content.text().cloned());
    let (Some(old), Some(new)) = (text(before.1), text(after.1)) else {
        out.push_str(&format!("Binary files {} and {} differ\n", name('a', before), name('b', after)));
        return out;
    };
    let map = LineMap::between(&old, &new);
    if !map.hunks().is_empty() {
        out.push_str(&format!("--- {}\n+++ {}\n", name('a', before), name('b', after)));
    }
    for group in groups(map.hunks()) {
        write_group(&mut out, &old, &new, group);
    }
    out
}

/// Hunks whose context would touch are shown together.
fn groups(hunks: &[Hunk]) -> Vec<&[Hunk]> {
    hunks.chunk_by(|hunk, next| next.before.start - hunk.before.end <= 2 * CONTEXT).collect()
}

fn write_group(out: &mut String, old: &Text, new: &Text, hunks: &[Hunk]) {
    let (first, last) = (&hunks[0], &hunks[hunks.len() - 1]);
    let lead = first.before.start.min(CONTEXT);
    let trail = (old.line_count() - last.before.end).min(CONTEXT);
    let range = |start: usize, end: usize| {
        // A side without lines is named by the line above it.
        let at = if end > start { start + 1 } else { start };
        format!("{at},{}", end - start)
    };
    out.push_str(&format!(
        "@@ -{} +{} @@\n",
        range(first.before.start - lead, last.before.end + trail),
        range(first.after.start - lead, last.after.end + trail)
    ));
    let mut at = first.before.start - lead;
    for hunk in hunks {
        rows(out, ' ', old, at..hunk.before.start);
        rows(out, '-', old, hunk.before.clone());
        rows(out, '+', new, hunk.after.clone());
        at = hunk.before.end;
    }
    rows(out, ' ', old, at..at + trail);
}

fn rows(out: &mut String, sign: char, text: &Text, lines: std::ops::Range<usize>) {
    for line in lines.map(LineNo::at_index) {
        out.push(sign);
        out.push_str(text.full_line(line));
        if text.ending(line) == Ending::None {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;
    use crate::edit::patch;

    fn content(text: &str) -> Content {
        Content::Text(Text::of(text.to_owned()).unwrap())
    }

    fn diff(before: Option<&str>, after: Option<&str>) -> String {
        let path = RelPath::new("src/a.txt").unwrap();
        let (before, after) = (before.map(content), after.map(content));
        unified((&path, before.as_ref()), (&path, after.as_ref()))
    }

    #[test]
    fn what_changed_is_shown_with_three_lines_around() {
        let old: String = (1..=12).map(|line| format!("{line}\n")).collect();
        assert_snapshot!(diff(Some(&old), Some(&old.replace("6\n", "six\nand a half\n"))), @r"
        diff --git a/src/a.txt b/src/a.txt
        --- a/src/a.txt
        +++ b/src/a.txt
        @@ -3,7 +3,8 @@
         3
         4
         5
        -6
        +six
        +and a half
         7
         8
         9
        ");
        assert_snapshot!(diff(None, Some("a\nb")), @r"
        diff --git a/src/a.txt b/src/a.txt
        new file mode 100644
        --- /dev/null
        +++ b/src/a.txt
        @@ -0,0 +1,2 @@
        +a
        +b
        \ No newline at end of file
        ");
        assert_snapshot!(diff(Some("a\n"), None), @r"
        diff --git a/src/a.txt b/src/a.txt
        deleted file mode 100644
        --- a/src/a.txt
        +++ /dev/null
        @@ -1,1 +0,0 @@
        -a
        ");
        assert_eq!(diff(Some("a\n"), Some("a\n")), "");
    }

    proptest! {
        /// What is shown can be read back, by ourselves at least.
        #[test]
        fn a_shown_difference_is_a_patch(before in "([a-c]{1,2}\n){1,15}", after in "([a-c]{1,2}\n){1,15}") {
            prop_assume!(before != after);
            let shown = diff(Some(&before), Some(&after));
            let parsed = patch::parse(&shown).unwrap();
            let patch::FilePatch::Update { chunks, .. } = &parsed.files[0] else { panic!("an update") };
            let text = Text::of(before).unwrap();
            if let Ok(splices) = patch::patch_splices(&text, chunks) {
                prop_assert_eq!(crate::change::splice(&text, &splices).0, after);
            }
        }
    }
}
