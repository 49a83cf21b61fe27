//! Counts the output of a command as seen, by comparing it with the files that it may come from, the most likely first.

use surehand_core::{
    KnownLines, Present, RelPath, Text,
    shell::{
        mentions::{self, Mentions},
        printed::{Candidate, CandidateRank, PrintedOutput},
    },
};

use super::{
    ShellCommand,
    files_before::{FileBefore, FilesBefore},
    mentioned_files::MentionedFiles,
};
use crate::session::Session;

/// The maximum size of all files compared with one output.
const MOST_BYTES: usize = 16 << 20;

/// The maximum size of a file that neither the command nor the output names.
const MOST_BYTES_UNNAMED: usize = 1 << 20;

/// The maximum number of files that are read for each rank of candidates.
const MOST_FILES: usize = 200;

/// The number of recently seen files that are candidates.
const LATELY: usize = 32;

impl Session {
    /// Marks the lines that a command printed of this workspace's files as seen. `then` holds the versions at that
    /// time, as far as they were noted.
    pub(super) fn count_as_read(
        &mut self,
        command: &ShellCommand<'_>,
        mentions: &Mentions,
        mut mentioned: MentionedFiles,
        then: &FilesBefore,
    ) -> Vec<KnownLines> {
        let mut printed = PrintedOutput::new(command.line, command.output);
        if printed.is_blank() {
            return Vec::new();
        }
        let workspace = self.workspace().clone();
        mentioned.look_up(&workspace, &mentions::in_output(command.output));
        let mut room = MOST_BYTES;
        let mut read = self.take_printed(&mut printed, &mentioned.files, CandidateRank::Named, then, &mut room);
        if !printed.is_accounted_for() {
            let possible = mentioned.possible_paths(&workspace, mentions);
            read.extend(self.take_printed(&mut printed, &possible, CandidateRank::Possible, then, &mut room));
        }
        if !printed.is_accounted_for() {
            let recent = self.tracker().map(|tracker| tracker.lately_viewed(&workspace, LATELY)).unwrap_or_default();
            read.extend(self.take_printed(&mut printed, &recent, CandidateRank::Recent, then, &mut room));
        }
        self.track_read(&read);
        read
    }

    /// Compares the remaining output with these files, and marks the lines it shows as seen.
    fn take_printed(
        &mut self,
        printed: &mut PrintedOutput,
        paths: &[RelPath],
        rank: CandidateRank,
        then: &FilesBefore,
        room: &mut usize,
    ) -> Vec<KnownLines> {
        let mut text = |path: &RelPath| self.text_then(path, then).or_else(|| self.text_within(path, rank, room));
        let files: Vec<(RelPath, Text)> = paths.iter().take(MOST_FILES).filter_map(&mut text).collect();
        let candidates: Vec<Candidate<'_>> =
            files.iter().map(|(path, text)| Candidate { path: path.as_str(), text, rank }).collect();
        let shown = printed.lines_of(&candidates);
        let mut read = Vec::new();
        for ((path, text), lines) in files.into_iter().zip(shown).filter(|(_, lines)| !lines.is_empty()) {
            self.record_shown(&path, &text, &lines);
            self.clear_refusals(&path);
            read.push(KnownLines { path, text, lines });
        }
        read
    }

    /// The text of a file when the command printed it, if it was noted.
    fn text_then(&mut self, path: &RelPath, then: &FilesBefore) -> Option<(RelPath, Text)> {
        let FileBefore::Version(version) = then.get(path) else { return None };
        let workspace = self.workspace().clone();
        Some((path.clone(), self.files.text(&workspace, &version)?))
    }

    /// The text of a file, within the remaining size.
    fn text_within(&mut self, path: &RelPath, rank: CandidateRank, room: &mut usize) -> Option<(RelPath, Text)> {
        let most = if rank == CandidateRank::Named { *room } else { (*room).min(MOST_BYTES_UNNAMED) };
        let limit = self.limits().file_bytes.min(most as u64);
        let workspace = self.workspace().clone();
        let gathered = self.files.gather_up_to(&workspace, path.as_str(), limit).ok()?;
        let Present::Text(text) = gathered.present else { return None };
        *room = room.checked_sub(text.bytes().len())?;
        Some((gathered.path, text))
    }
}
