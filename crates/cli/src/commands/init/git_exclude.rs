//! Adds lines to `.git/info/exclude` that hide the files of one user from git. `.gitignore` belongs to the project and
//! is not changed.

use surehand_engine::GitCheckout;

use super::{
    backup,
    changes::{ConfigChange, InitAction},
    config_dirs::{ConfigDirs, ConfigScope},
    config_files::{ConfigFile, RequiredContent},
    json_config, toml_config,
};

#[derive(Default)]
struct ExcludePatterns {
    drop: Vec<String>,
    add: Vec<String>,
}

/// Plans the change of the exclude file that the changes of a client need.
pub(super) fn step(
    scope: ConfigScope,
    dirs: &ConfigDirs,
    action: InitAction,
    planned: &[(ConfigFile, ConfigChange)],
    is_shared: &dyn Fn(&ConfigFile) -> bool,
) -> anyhow::Result<Option<ConfigChange>> {
    let Some(checkout) = dirs.checkout.as_ref().filter(|_| scope != ConfigScope::Everywhere) else { return Ok(None) };
    let path = checkout.exclude_file();
    let before = backup::read(&path)?;
    let existing = before.as_deref().unwrap_or_default();
    let mut patterns = ExcludePatterns::default();
    for (file, step) in planned {
        let Some([pattern, copies]) = patterns_of(checkout, file) else { continue };
        if action == InitAction::Remove || scope == ConfigScope::Project {
            patterns.drop.extend([pattern, copies]);
        } else if step.after.is_some() {
            if step.keeps_copy {
                patterns.add.push(copies);
            }
            // A file with other content stays as visible to git as it was.
            let is_mine = !is_shared(file) || is_all_ours(file, step);
            if is_mine && !checkout.tracks(&file.path) {
                patterns.add.push(pattern);
            }
        }
    }
    let after = patterns.applied(existing);
    let after = (!after.is_empty() || before.as_deref() == Some("")).then_some(after);
    let what = match (action, scope) {
        (InitAction::Remove, _) => "git ignores it no longer",
        (InitAction::Add, ConfigScope::Project) => "git sees it from now on",
        (InitAction::Add, _) => "git ignores what only you have",
    };
    let is_changed = after != before;
    Ok(is_changed.then(|| ConfigChange { after, before, ..ConfigChange::untouched(path, what) }))
}

/// Whether a file was set up for one user: git ignores the file, or if the file has other content, only its backups.
pub(super) fn is_mine(dirs: &ConfigDirs, file: &ConfigFile) -> bool {
    let Some(checkout) = &dirs.checkout else { return true };
    let text = backup::read(&checkout.exclude_file()).ok().flatten().unwrap_or_default();
    patterns_of(checkout, file).is_some_and(|patterns| text.lines().any(|line| patterns.iter().any(|pattern| line == pattern)))
}

/// The patterns of a file and of its backups.
fn patterns_of(checkout: &GitCheckout, file: &ConfigFile) -> Option<[String; 2]> {
    let pattern = checkout.exclude_pattern(&file.path)?;
    let copies = format!("{pattern}{}*", backup::BACKUP);
    Some([pattern, copies])
}

/// Whether `init` created the file, and it contains nothing else.
fn is_all_ours(file: &ConfigFile, step: &ConfigChange) -> bool {
    let Some(before) = &step.before else { return true };
    let has_nothing_else = match &file.needs {
        RequiredContent::Json(wanted) => json_config::remove(before, wanted, &[]) == Ok(None),
        RequiredContent::Toml(server) => toml_config::remove(before, server, &[]) == Ok(None),
        RequiredContent::Whole(_) => true,
    };
    has_nothing_else && backup::backups(&file.path).is_empty()
}

impl ExcludePatterns {
    fn applied(&self, text: &str) -> String {
        let is_kept = |line: &&str| !self.drop.iter().any(|pattern| line.trim_end_matches(['\r', '\n']) == pattern);
        let mut text: String = text.split_inclusive('\n').filter(is_kept).collect();
        for pattern in &self.add {
            if text.lines().any(|line| line == pattern) {
                continue;
            }
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(pattern);
            text.push('\n');
        }
        text
    }
}
