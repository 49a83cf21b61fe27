//! The restore targets that a person can name: a time, a change or a checkpoint.

use jiff::{Timestamp, Zoned, civil, tz::TimeZone};
use surehand_core::ChangeId;
use surehand_store::{CheckpointId, Millis};

use crate::{
    session_names::{IdError, LogId},
    workspace::Workspace,
};

/// The state to restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreTo {
    /// The state at this time.
    Time(Millis),
    /// The state right after this change.
    Change(ChangeId),
    /// The state that a checkpoint kept.
    Checkpoint(CheckpointId),
}

/// Why a restore target could not be resolved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreToError {
    /// The input is neither a time nor the id or name of a log entry.
    #[error("{typed}: neither a time (10m, 14:05, 2026-01-31T14:05:00Z) nor a checkpoint or change that `surehand log` lists")]
    Unknown {
        /// The input as the person typed it.
        typed: String,
    },
    /// The log could not be read, or the input matches several entries.
    #[error(transparent)]
    Id(IdError),
}

impl RestoreTo {
    /// Resolves the input: a time if it reads like one, otherwise an entry of the log. Times of day are in the time
    /// zone of `now`.
    pub fn find(workspace: &Workspace, typed: &str, now: &Zoned) -> Result<Self, RestoreToError> {
        match time(typed.trim(), now) {
            Some(moment) => Ok(Self::Time(moment.as_millisecond())),
            None => match workspace.find_logged(typed) {
                Err(IdError::Unknown { .. }) => Err(RestoreToError::Unknown { typed: typed.to_owned() }),
                Err(error) => Err(RestoreToError::Id(error)),
                Ok(found) => Ok(found.into()),
            },
        }
    }
}

/// Whether the input reads as a time. A checkpoint with this name could not be found by it.
pub fn reads_as_time(typed: &str, now: &Zoned) -> bool {
    time(typed.trim(), now).is_some()
}

impl From<LogId> for RestoreTo {
    fn from(id: LogId) -> Self {
        match id {
            LogId::Change(change) => Self::Change(change),
            LogId::Checkpoint(checkpoint) => Self::Checkpoint(checkpoint),
        }
    }
}

/// Parses a time as people write it: an age, a time of day, or a date with or without a time.
fn time(text: &str, now: &Zoned) -> Option<Timestamp> {
    let ago = text.strip_suffix("ago").unwrap_or(text).trim_end();
    if let Some((number, unit)) = ago.split_at_checked(ago.len().saturating_sub(1))
        && let Ok(number) = number.parse::<u32>()
        && ago.len() <= 6
    {
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return None,
        };
        return Timestamp::from_millisecond(now.timestamp().as_millisecond() - i64::from(number) * seconds * 1000).ok();
    }
    let zone = |zone: &TimeZone, moment: civil::DateTime| moment.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp());
    if text.contains(':') && !text.contains('-') {
        let padded = if text.matches(':').count() == 1 { format!("{text}:00") } else { text.to_owned() };
        let padded = if padded.find(':') == Some(1) { format!("0{padded}") } else { padded };
        let moment = zone(now.time_zone(), now.date().to_datetime(padded.parse().ok()?))?;
        // A time of day later than now means yesterday.
        return match moment > now.timestamp() {
            true => zone(now.time_zone(), now.date().yesterday().ok()?.to_datetime(padded.parse().ok()?)),
            false => Some(moment),
        };
    }
    if !text.contains('-') {
        return None;
    }
    let of_date = || text.parse::<civil::DateTime>().ok().and_then(|moment| zone(now.time_zone(), moment));
    text.parse::<Timestamp>().ok().or_else(of_date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let now: Zoned = "2026-03-10T14:00:00+01:00[+01:00]".parse().unwrap();
        assert_eq!(time(text, &now).map(|moment| moment.to_string()).as_deref(), expected, "{text}");
    }

    #[test]
    fn times_are_understood_as_people_write_them() {
        check("10m", Some("2026-03-10T12:50:00Z"));
        check("2h ago", Some("2026-03-10T11:00:00Z"));
        check("45s", Some("2026-03-10T12:59:15Z"));
        check("3d", Some("2026-03-07T13:00:00Z"));
        check("13:05", Some("2026-03-10T12:05:00Z"));
        check("9:05:30", Some("2026-03-10T08:05:30Z"));
        check("14:05", Some("2026-03-09T13:05:00Z"));
        check("2026-03-01T10:00:00Z", Some("2026-03-01T10:00:00Z"));
        check("2026-03-01T10:00:00+02:00", Some("2026-03-01T08:00:00Z"));
        check("2026-03-01 10:00", Some("2026-03-01T09:00:00Z"));
        check("2026-03-01", Some("2026-02-28T23:00:00Z"));
    }

    #[test]
    fn names_are_not_taken_for_times() {
        for name in ["", "m", "abc", "3f2a91bc", "1234", "12x", "25:00", "before-refactoring", "a:b", "m ago", "0012345d"] {
            check(name, None);
        }
    }
}
