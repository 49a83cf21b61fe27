//! The branch that the work of a checkout will be merged into, as far as the repository says so.

use super::{
    CannotTell, GitDirs, ObjectId,
    head::{Reference, reference},
    work_tree::{MAX_CONFIG, config_value, read_small},
};

/// Names that a main branch usually has.
const USUAL: [&str; 3] = ["main", "master", "trunk"];

/// The commit of the target branch; `None` if there is none, or if the checkout is on it.
///
/// It is the branch that is configured as upstream, unless that is only the remote copy of the same branch. Else it is
/// the default branch of the remote, or one with a usual name, or the branch of the main checkout.
pub(crate) fn target_commit(git: &GitDirs, head: &Reference) -> Result<Option<ObjectId>, CannotTell> {
    let own = head.name.strip_prefix("refs/heads/");
    let commit = |name: &str| reference(git, name).map(|found| found.commit);
    let upstream = own.and_then(|own| Upstream::of(git, own));
    if let Some(upstream) = upstream.as_ref().filter(|upstream| Some(upstream.branch.as_str()) != own)
        && let Some(found) = commit(&upstream.reference())?
    {
        return Ok(Some(found));
    }
    let remote = upstream.map(|upstream| upstream.remote).filter(|remote| remote != ".");
    let remote = remote.unwrap_or_else(|| "origin".to_owned());
    let of_remote = ["HEAD"].iter().chain(&USUAL).map(|name| format!("refs/remotes/{remote}/{name}"));
    for name in of_remote {
        if let Some(found) = commit(&name)? {
            return Ok(Some(found));
        }
    }
    if own.is_some_and(|own| USUAL.contains(&own)) {
        return Ok(None);
    }
    for name in USUAL {
        if let Some(found) = commit(&format!("refs/heads/{name}"))? {
            return Ok(Some(found));
        }
    }
    let of_main_checkout = reference(&GitDirs { own: git.common.clone(), ..git.clone() }, "HEAD")?;
    Ok(of_main_checkout.commit.filter(|_| of_main_checkout.name != head.name))
}

struct Upstream {
    /// `.` for this repository.
    remote: String,
    branch: String,
}

impl Upstream {
    fn of(git: &GitDirs, branch: &str) -> Option<Self> {
        let config = read_small(&git.common.join("config"), MAX_CONFIG)?;
        let value = |key: &str| config_value(&config, &format!("branch \"{branch}\""), key);
        Some(Self { remote: value("remote")?, branch: value("merge")?.strip_prefix("refs/heads/")?.to_owned() })
    }

    fn reference(&self) -> String {
        match self.remote.as_str() {
            "." => format!("refs/heads/{}", self.branch),
            remote => format!("refs/remotes/{remote}/{}", self.branch),
        }
    }
}
