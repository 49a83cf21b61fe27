//! Renders a collision: changes of another agent that will conflict with an edit.

use crate::{
    forecast::{Collision, Forecast, Side, UnknownForecast},
    lines::LineSet,
    merge3::Conflict,
    render::{change::ago, describe_lines},
};

/// A collision as one line; `None` if no conflict is expected.
///
/// All line numbers are those of the reader's own version.
pub fn collision(collision: &Collision) -> Option<String> {
    let Collision { agent, branch, path, seconds_ago, forecast } = collision;
    let agent = agent.as_deref().unwrap_or("another checkout");
    let branch = branch.as_ref().map(|branch| format!(" on branch {branch}")).unwrap_or_default();
    let when = seconds_ago.map(ago).unwrap_or_default();
    let lines = |conflicts: &[Conflict]| {
        let theirs: LineSet = conflicts.iter().map(Conflict::their_lines).collect();
        let mine: LineSet = conflicts.iter().map(Conflict::my_lines).collect();
        (describe_lines(&theirs), describe_lines(&mine))
    };
    let (what, then) = match forecast {
        Forecast::Clean
        | Forecast::Unknown(UnknownForecast::NoBase | UnknownForecast::OtherBase | UnknownForecast::TooMuchWork) => return None,
        Forecast::SameLines(conflicts) => {
            let (theirs, mine) = lines(conflicts);
            (format!("changed {theirs} of {path}"), format!("your edit of {mine} will conflict"))
        }
        Forecast::Unknown(UnknownForecast::NotShared(conflicts)) if conflicts.is_empty() => {
            (format!("changed {path}"), "your change will conflict unless it is the same".to_owned())
        }
        Forecast::Unknown(UnknownForecast::NotShared(conflicts)) => {
            let (theirs, mine) = lines(conflicts);
            (format!("changed {theirs} of {path}"), format!("your edit of {mine} will conflict unless it is the same"))
        }
        Forecast::Deleted { by: Side::Theirs } => {
            (format!("deleted or moved {path}"), "your change of it may conflict".to_owned())
        }
        Forecast::Deleted { by: Side::Mine } => (format!("changed {path}"), "deleting it will conflict".to_owned()),
        Forecast::Binary => (format!("changed {path}"), "your change of this binary file will conflict".to_owned()),
    };
    Some(format!("{agent}{branch} {what}{when}; {then}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        RelPath,
        forecast::{Version, forecast},
    };

    fn line(agent: Option<&str>, forecast: Forecast) -> Option<String> {
        collision(&Collision {
            agent: agent.map(str::to_owned),
            branch: agent.map(|_| "b".to_owned()),
            path: RelPath::new("src/a.rs").unwrap(),
            seconds_ago: agent.map(|_| 185),
            forecast,
        })
    }

    #[test]
    fn a_collision_names_the_agent_and_both_sides_lines() {
        let text = |changed: std::ops::Range<usize>, by: &str| -> String {
            (1..=60)
                .map(|number| if changed.contains(&number) { format!("{by} {number}\n") } else { format!("{number}\n") })
                .collect()
        };
        let (base, mine, theirs) = (text(0..0, ""), text(45..46, "mine"), text(40..53, "theirs"));
        let forecast = forecast(base.as_bytes(), &Version::Content(mine.as_bytes()), &Version::Content(theirs.as_bytes()));
        insta::assert_snapshot!(
            line(Some("codex 71c0"), forecast).unwrap(),
            @"codex 71c0 on branch b changed lines 40-52 of src/a.rs, 3 minutes ago; your edit of line 45 will conflict"
        );
    }

    #[test]
    fn deleted_and_binary_files_have_words_of_their_own() {
        insta::assert_snapshot!(
            line(Some("codex 71c0"), Forecast::Deleted { by: Side::Theirs }).unwrap(),
            @"codex 71c0 on branch b deleted or moved src/a.rs, 3 minutes ago; your change of it may conflict"
        );
        insta::assert_snapshot!(
            line(None, Forecast::Deleted { by: Side::Mine }).unwrap(),
            @"another checkout changed src/a.rs; deleting it will conflict"
        );
        insta::assert_snapshot!(
            line(None, Forecast::Binary).unwrap(),
            @"another checkout changed src/a.rs; your change of this binary file will conflict"
        );
        assert_eq!(line(None, Forecast::Clean), None);
        assert_eq!(line(None, Forecast::Unknown(UnknownForecast::NoBase)), None);
    }
}
