//! `surehand ui`: the page, and reports of sessions.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use anyhow::Context;
use serde_json::json;
use surehand_engine::{SessionId, Workspace};
use surehand_ui::PageServer;

use crate::{
    args::{PageArgs, PlaceArgs, UiArgs},
    fleet, output, workspace,
};

pub(crate) fn run(args: &UiArgs) -> anyhow::Result<()> {
    match &args.export {
        Some(file) => export(args, file),
        None => {
            let workspace = open(&args.place)?;
            let server = announce(&workspace, &args.page, args.json)?;
            let board = fleet::board_of_page(&workspace);
            Ok(surehand_ui::serve(workspace, server, board)?)
        }
    }
}

/// Listens on the port, and prints the address.
pub(super) fn announce(workspace: &Workspace, args: &PageArgs, json: bool) -> anyhow::Result<PageServer> {
    let server = PageServer::bind(args.port)?;
    let (root, url) = (workspace.path().display().to_string(), server.url());
    match json {
        true => output::print(&format!("{}\n", json!({ "url": url, "workspace": root, "pid": std::process::id() })))?,
        false => output::print(&format!("{root} is shown at\n  {url}\nCtrl-C ends it.\n"))?,
    }
    if args.open {
        std::thread::spawn(move || {
            if let Err(error) = open_browser(&url) {
                anstream::eprintln!("note: {error:#}; open the address yourself");
            }
        });
    }
    Ok(server)
}

/// Opens the workspace for changes, or read-only if its state cannot be written.
fn open(place: &PlaceArgs) -> anyhow::Result<Arc<Workspace>> {
    workspace::open(place).or_else(|error| match workspace::open_read_only(place) {
        Ok(workspace) if workspace.state_report().paths.is_some() => Ok(workspace),
        Ok(_) | Err(_) => Err(error),
    })
}

/// Asks the desktop to open an address.
fn open_browser(url: &str) -> anyhow::Result<()> {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(opener);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().with_context(|| format!("{opener} cannot be started"))?;
    anyhow::ensure!(status.success(), "{opener} failed: {status}");
    Ok(())
}

fn export(args: &UiArgs, file: &Path) -> anyhow::Result<()> {
    let workspace = workspace::open_read_only(&args.place)?;
    let session = match &args.session {
        Some(typed) => workspace::find_session(&workspace, typed)?,
        None => last_session(&workspace)?,
    };
    let report = surehand_ui::report(&workspace, &session)?;
    if file == Path::new("-") {
        return output::print_bytes(report.as_bytes());
    }
    write_new(file, &report)?;
    let name = workspace.session_names()?.name(&session);
    let object = json!({ "file": file, "session": session, "bytes": report.len() });
    let text =
        format!("Wrote {}, a report of {name}. It has contents of files; send it to those who may see them.\n", file.display());
    output::print(&if args.json { format!("{object:#}\n") } else { text })
}

fn last_session(workspace: &Workspace) -> anyhow::Result<SessionId> {
    let known = workspace.ask(|store| store.known_sessions())?;
    let last = known.into_iter().max_by_key(|session| session.last_active).context("there are no sessions to report")?;
    Ok(last.id)
}

/// Writes a new file that only its owner can read. Never overwrites a file.
fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = || format!("{}: cannot be written", path.display());
    let mut file = tempfile::NamedTempFile::new_in(dir).with_context(failed)?;
    file.write_all(text.as_bytes()).with_context(failed)?;
    file.persist_noclobber(path).map_err(|error| error.error).with_context(failed)?;
    Ok(())
}
