//! `surehand self`: the version, how it was installed, and how to update and remove it.

use anyhow::Context;
use serde_json::json;

use crate::{args::SelfArgs, installation::installer_of, output, user_dirs};

pub(crate) fn run(args: &SelfArgs) -> anyhow::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let program = std::env::current_exe().context("the path of this program")?;
    let installer = installer_of(&program);
    let home = user_dirs::state_home()?;
    let state = home.fixed.or(home.user);
    output::print(&if args.json {
        let about = json!({
            "version": version,
            "program": program,
            "installed_by": installer.name(),
            "update": installer.update(),
            "remove": installer.removal(),
            "settings": home.settings,
            "state": state,
        });
        format!("{about:#}\n")
    } else {
        let shown =
            |path: &Option<std::path::PathBuf>| path.as_ref().map_or("none".to_owned(), |path| path.display().to_string());
        let removal = installer.removal().map_or_else(|| format!("rm {}", program.display()), str::to_owned);
        format!(
            "surehand {version}\n\
             program   {}\n\
             installed by {}\n\
             update    {}\n\
             remove    surehand init --remove in each project, then {removal}\n\
             settings  {}\n\
             state     {}\n",
            program.display(),
            installer.name(),
            installer.update(),
            shown(&home.settings),
            shown(&state),
        )
    })
}
