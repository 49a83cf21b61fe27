//! The gate decides whether a session may edit a file, given the lines it has read and the file's current content. It
//! looks at its arguments only.
//!
//! Each gate function lets one kind of change pass. [`edit`] needs any part of the file to have been read.
//! [`overwrite`] needs every line of the current version. [`take_away`] (delete and move) needs what an edit needs,
//! since both can be undone. Versions are compared by content hash, never by time. A stale file is refused with the
//! lines that changed, and showing them counts as reading them: `view_after` in the refusal is what the session knows
//! once it has seen the text.

use crate::{
    content::{Blob, Content},
    excerpt::Excerpt,
    hash::Anchor,
    line_map::LineMap,
    lines::{LineNo, LineRange, LineSet},
    path::RelPath,
    policy::{Limits, OnChange, Policy},
    proof::Proof,
    refusal::{Cause, IfRepeated, Mismatch, MismatchKind, PartialUse, Refusal, Remap},
    text::Text,
    view::View,
};

/// The current state of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Present {
    /// The path does not exist.
    Absent,
    /// A file that can be read as text.
    Text(Text),
    /// A file that cannot be shown, because it is binary or too large.
    Blob(Blob, Cause),
    /// Something that cannot be read as a file.
    Unreadable(Cause),
}

impl Present {
    /// The text of the file, if it holds text.
    pub fn text(&self) -> Option<&Text> {
        match self {
            Present::Text(text) => Some(text),
            Present::Absent | Present::Blob(..) | Present::Unreadable(_) => None,
        }
    }

    /// The content, if it is a file.
    pub fn content(&self) -> Option<Content> {
        match self {
            Present::Text(text) => Some(Content::Text(text.clone())),
            Present::Blob(blob, _) => Some(Content::Blob(blob.clone())),
            Present::Absent | Present::Unreadable(_) => None,
        }
    }
}

/// How far Surehand has tracked what a session has seen of a file.
#[derive(Debug, Clone, Copy)]
pub enum Tracking<'a> {
    /// There is no tracker, so nothing is refused as unread or stale.
    Off,
    /// The session has not seen the file.
    Unseen,
    /// The session was warned that the current file cannot be shown, and has sent the same call again.
    Warned,
    /// The session has seen some lines of the file.
    Seen {
        /// The seen lines, and the version they belong to.
        view: &'a View,
        /// The text of that version, if it is still stored.
        text: Option<&'a Text>,
        /// How its lines have moved since, if every change in between was recorded. A comparison of the texts would
        /// have to guess.
        provenance: Option<&'a LineMap>,
    },
}

/// A file that a call wants to change, with everything that the decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The canonical path of the file.
    pub path: &'a RelPath,
    /// The lines that the session has seen.
    pub tracking: Tracking<'a>,
    /// The file as it is now.
    pub present: &'a Present,
    /// The policy that applies to the call.
    pub policy: &'a Policy,
    /// The limits that apply to the call.
    pub limits: &'a Limits,
}

impl<'a> Target<'a> {
    /// A refusal about this file.
    pub fn refuse(&self, cause: Cause) -> Refusal {
        Refusal::of(self.path, cause)
    }

    /// The session's view of the file, if it has seen the file.
    pub fn view(&self) -> Option<&'a View> {
        match self.tracking {
            Tracking::Seen { view, .. } => Some(view),
            Tracking::Off | Tracking::Unseen | Tracking::Warned => None,
        }
    }

    /// Whether this session is tracked.
    pub fn is_tracked(&self) -> bool {
        !matches!(self.tracking, Tracking::Off)
    }
}

/// An edit that has passed the gate.
#[derive(Debug, Clone, Copy)]
pub struct Permit<'a> {
    /// The current text of the file.
    pub now: &'a Text,
    /// The text that the session knows, if it differs. The edit is meant for this text, and must be proven to fit the
    /// current one.
    pub picture: Option<&'a Text>,
    /// How the lines of the picture moved, if that is recorded.
    pub provenance: Option<&'a LineMap>,
}

/// Lets an edit of an existing file pass, and returns the text to edit.
///
/// `anchors` are the lines that an anchored edit names; a stale refusal says where they are now.
pub fn edit<'a>(target: &Target<'a>, anchors: Option<&[Anchor]>) -> Result<Permit<'a>, Refusal> {
    if let (Tracking::Unseen, true) = (target.tracking, target.policy.require_read) {
        // This check comes first. If a read could not show the file either, the refusal gives that reason instead.
        return Err(target.refuse(match target.present {
            Present::Absent => Cause::NoSuchFile,
            Present::Text(_) => Cause::unread(),
            Present::Blob(_, cause) | Present::Unreadable(cause) => cause.clone(),
        }));
    }
    let now = match target.present {
        Present::Text(text) => text,
        Present::Absent => return Err(target.refuse(missing_cause(target))),
        Present::Blob(_, cause) | Present::Unreadable(cause) => return Err(target.refuse(cause.clone())),
    };
    let picture = match target.tracking {
        Tracking::Seen { view, text: Some(seen), .. } if target.policy.on_change == OnChange::Rebase && !view.is_unknown() => {
            (seen.version() != now.version()).then_some(seen)
        }
        _ => None,
    };
    if picture.is_none() {
        check_current(target, now, anchors)?;
    }
    Ok(Permit { now, picture, provenance: picture.and_then(|picture| provenance(target, picture, now)) })
}

/// Lets a file be deleted or moved. As for an edit, any part of it must have been seen, and it must not have changed.
/// Binary files need not have been seen.
pub fn take_away(target: &Target<'_>) -> Result<(), Refusal> {
    match target.present {
        Present::Blob(..) => Ok(()),
        Present::Unreadable(cause) => Err(target.refuse(cause.clone())),
        Present::Absent => Err(target.refuse(missing_cause(target))),
        Present::Text(_) if matches!(target.tracking, Tracking::Unseen) && target.policy.require_read => {
            Err(target.refuse(Cause::unread()))
        }
        Present::Text(text) => check_current(target, text, None),
    }
}

/// The cause for a missing file: deleted if the session has seen it; otherwise, as far as it knows, it never existed.
fn missing_cause(target: &Target<'_>) -> Cause {
    if target.view().is_some() { Cause::Deleted } else { Cause::NoSuchFile }
}

/// Lets the replacement of a whole file pass. A file that cannot be shown is replaced only if the session sends the
/// call twice. Without a tracker, the second call cannot be distinguished from the first, so the file must be deleted.
pub fn overwrite(target: &Target<'_>) -> Result<(), Refusal> {
    let text = match (target.present, target.tracking) {
        (Present::Absent, _) | (Present::Blob(..), Tracking::Warned) => return Ok(()),
        (Present::Blob(blob, cause), Tracking::Off) => return Err(refuse_unshown(target, blob, cause, IfRepeated::IsRefused)),
        (Present::Blob(blob, cause), _) => return Err(refuse_unshown(target, blob, cause, IfRepeated::Replaces)),
        (Present::Unreadable(cause), _) => return Err(target.refuse(cause.clone())),
        (_, Tracking::Unseen) if target.policy.require_read => return Err(target.refuse(Cause::unread())),
        (Present::Text(text), _) => text,
    };
    check_current(target, text, None)?;
    let Some(view) = target.view() else { return Ok(()) };
    if !target.policy.require_read || view.is_whole() {
        return Ok(());
    }
    let unseen = view.unseen_lines();
    let fresh = Excerpt::of(text, &unseen);
    let view = view.clone().showing(&fresh.shown);
    Err(target.refuse(Cause::Partial { unseen, fresh, by: PartialUse::Overwrite }).teaching(view))
}

/// The refusal to replace a file that cannot be shown.
pub(crate) fn refuse_unshown(target: &Target<'_>, blob: &Blob, cause: &Cause, if_repeated: IfRepeated) -> Refusal {
    target.refuse(Cause::Unshown { why: Box::new(cause.clone()), version: blob.version(), if_repeated })
}

fn check_current(target: &Target<'_>, now: &Text, anchors: Option<&[Anchor]>) -> Result<(), Refusal> {
    let Some(view) = target.view() else { return Ok(()) };
    if view.version() != now.version() {
        return Err(refuse_stale(target, now, anchors));
    }
    if view.is_unknown() { Err(target.refuse(Cause::Invalidated)) } else { Ok(()) }
}

/// How the seen lines moved, if that is recorded. A record that does not fit the texts is ignored.
fn provenance<'a>(target: &Target<'a>, seen: &Text, now: &Text) -> Option<&'a LineMap> {
    match target.tracking {
        Tracking::Seen { provenance, .. } => provenance.filter(|map| map.fits(seen, now)),
        Tracking::Off | Tracking::Unseen | Tracking::Warned => None,
    }
}

/// The refusal of an edit of a changed file. It holds the changed lines, so that the next call can succeed.
pub(crate) fn refuse_stale(target: &Target<'_>, now: &Text, anchors: Option<&[Anchor]>) -> Refusal {
    let Tracking::Seen { view, text: seen, .. } = target.tracking else { return target.refuse(Cause::unread()) };
    let Some(seen) = seen else {
        // The text that the session saw is no longer stored. Nothing can be carried over, so every line counts as new.
        let unknown = |anchor: &Anchor| MeantLine { anchor: *anchor, shown: None, place: None };
        let meant: Vec<MeantLine<'_>> = anchors.unwrap_or_default().iter().map(unknown).collect();
        return stale(target, now, LineSet::whole(now.line_count()), View::of(now), &meant, anchors.is_some());
    };
    let proof = Proof::between(provenance(target, seen, now), seen, now);
    let meant = meant_lines(anchors.unwrap_or_default(), view, &proof, seen);
    let mut view = view.carried_by(&proof, now);
    view.know_again();
    stale(target, now, proof.map().affected(), view, &meant, anchors.is_some())
}

/// `view` is the session's view of the current text before it reads the refusal.
fn stale(target: &Target<'_>, now: &Text, affected: LineSet, mut view: View, meant: &[MeantLine<'_>], anchors: bool) -> Refusal {
    let (mismatches, remaps) = (mismatches(meant, now), remaps(meant, now));
    let fresh = Excerpt::of(now, &affected);
    view.show_set(&fresh.shown);
    remaps.iter().for_each(|remap| view.show(LineRange::line(remap.to.line)));
    let total_lines = now.line_count();
    target.refuse(Cause::Stale { affected, fresh, mismatches, remaps, anchors, total_lines }).teaching(view)
}

/// The line that an anchor refers to.
struct MeantLine<'a> {
    anchor: Anchor,
    /// The text that the session was shown under this number.
    shown: Option<&'a str>,
    /// Where the line is now, if that is proven.
    place: Option<LineNo>,
}

/// The lines that the anchors refer to, without duplicates.
fn meant_lines<'a>(anchors: &[Anchor], view: &View, proof: &Proof<'_>, seen: &'a Text) -> Vec<MeantLine<'a>> {
    let is_proven = |line: &LineNo| proof.covers(&[*line].into_iter().collect());
    let mut meant: Vec<MeantLine<'a>> = Vec::new();
    for &anchor in anchors {
        if meant.iter().any(|known| known.anchor == anchor) {
            continue;
        }
        let shown = view.line_shown_as(anchor.line);
        let named = shown.filter(|line| Anchor::of(*line, seen.line(*line)).hash == anchor.hash);
        let place = named.and_then(|line| proof.map().new_place(line).filter(|_| is_proven(&line)));
        meant.push(MeantLine { anchor, shown: shown.map(|line| seen.line(line)), place });
    }
    meant
}

/// The anchors that do not name the lines that were meant.
fn mismatches(meant: &[MeantLine<'_>], now: &Text) -> Vec<Mismatch> {
    let mismatch = |MeantLine { anchor, shown, place }: &MeantLine<'_>| {
        let found = now.has_line(anchor.line).then(|| now.line(anchor.line));
        let reads_the_same = found.is_some_and(|found| Anchor::of(anchor.line, found).hash == anchor.hash);
        let why = match (place, found) {
            (Some(place), _) if *place == anchor.line => return None,
            (Some(_), _) => MismatchKind::Moved,
            (None, None) => MismatchKind::PastEnd,
            (None, Some(_)) if !reads_the_same => MismatchKind::OtherText,
            (None, Some(_)) if shown.is_some() => MismatchKind::Gone,
            (None, Some(_)) => MismatchKind::Unseen,
        };
        let owned = |line: Option<&str>| line.map(str::to_owned);
        Some(Mismatch { anchor: *anchor, expected: owned(*shown), found: owned(found), why })
    };
    meant.iter().filter_map(mismatch).collect()
}

/// The current anchors of lines that are proven to be the ones that were meant.
fn remaps(meant: &[MeantLine<'_>], now: &Text) -> Vec<Remap> {
    let remap = |meant: &MeantLine<'_>| {
        let place = meant.place?;
        Some(Remap { from: meant.anchor, to: Anchor::of(place, now.line(place)) })
    };
    meant.iter().filter_map(remap).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{edit::replace::Replace, plan};

    fn text(content: &str) -> Text {
        Text::new(content.as_bytes().to_vec()).unwrap()
    }

    /// Plans an edit for a session that has this view of `seen`.
    fn edit(view: &View, seen: &Text, now: &Text, old: &str) -> Result<plan::Planned, Refusal> {
        let (path, policy, limits) = (RelPath::new("f").unwrap(), Policy::default(), Limits::default());
        let present = Present::Text(now.clone());
        let tracking = Tracking::Seen { view, text: Some(seen), provenance: None };
        let target = Target { path: &path, tracking, present: &present, policy: &policy, limits: &limits };
        plan::edit_file(&target, &Replace { old, new: "new text", all: false })
    }

    #[test]
    fn an_unshowable_file_is_replaced_after_a_warning() {
        let blob = Blob::new(b"a\0b".to_vec());
        let why = Cause::Binary { size: 3, kind: "binary data" };
        let present = Present::Blob(blob.clone(), why.clone());
        let (path, policy, limits) = (RelPath::new("f").unwrap(), Policy::default(), Limits::default());
        let write = |tracking, present, content: &str| {
            let target = Target { path: &path, tracking, present, policy: &policy, limits: &limits };
            plan::write_file(&target, content).map(drop).map_err(|refusal| refusal.cause)
        };
        let unshown = |if_repeated| Err(Cause::Unshown { why: Box::new(why.clone()), version: blob.version(), if_repeated });
        let (text, view) = (text("x"), View::whole(&text("x")));
        assert_eq!(write(Tracking::Off, &present, "x"), unshown(IfRepeated::IsRefused));
        assert_eq!(write(Tracking::Unseen, &present, "x"), unshown(IfRepeated::Replaces));
        assert_eq!(
            write(Tracking::Seen { view: &view, text: Some(&text), provenance: None }, &present, "x"),
            unshown(IfRepeated::Replaces)
        );
        assert_eq!(write(Tracking::Warned, &present, "x"), Ok(()));
        // A write that would fail the second time is not asked for.
        assert!(matches!(write(Tracking::Unseen, &present, "\0"), Err(Cause::BadArguments { .. })));
        let too_large = Present::Unreadable(Cause::TooLargeToKeep { size: 9, limit: 8 });
        assert!(matches!(write(Tracking::Warned, &too_large, "x"), Err(Cause::TooLargeToKeep { .. })));
    }

    proptest! {
        /// One stale refusal is enough: the next call is judged against the current file.
        #[test]
        fn after_a_stale_refusal_the_next_call_is_not_stale(before in "([a-d]{1,2}\n){0,12}", after in "([a-d]{1,2}\n){1,12}", line in 0usize..12) {
            let (before, after) = (text(&before), text(&after));
            prop_assume!(before != after);
            let old = after.line(crate::LineNo::at_index(line.min(after.line_count() - 1))).to_owned();
            let refusal = edit(&View::whole(&before), &before, &after, &old).unwrap_err();
            prop_assert_eq!(refusal.code(), crate::refusal::RefusalCode::Stale);
            let known = refusal.view_after.clone().unwrap();
            prop_assert!(known.is_whole(), "everything that changed was shown");
            match edit(&known, &after, &after, &old) {
                Ok(_) => {}
                Err(again) => prop_assert_eq!(again.code(), crate::refusal::RefusalCode::Ambiguous),
            }
        }
    }
}
