//! The address of the remote `origin`, in one spelling for all ways to reach the same repository.

use std::path::Path;

use super::{
    GitDirs,
    work_tree::{MAX_CONFIG, config_value, read_small},
};

/// The normalised address of `origin`; `None` without one. Without a scheme, a user, the scheme's own port or `.git`:
/// `git@example.org:team/app.git` and `https://example.org/team/app` are both `example.org/team/app`.
pub(crate) fn origin_of(git: &GitDirs) -> Option<String> {
    let config = read_small(&git.common.join("config"), MAX_CONFIG)?;
    let url = config_value(&config, "remote \"origin\"", "url").filter(|url| !url.is_empty())?;
    Some(normalised(&url, &git.common))
}

fn normalised(url: &str, common: &Path) -> String {
    let (scheme, rest) = url.split_once("://").map_or((None, url), |(scheme, rest)| (Some(scheme.to_ascii_lowercase()), rest));
    let address = match scheme.as_deref() {
        Some("file") => return local(rest, common),
        Some(scheme) => on_server(rest, default_port(scheme)),
        None => match rest.split_once(':') {
            // A colon after the first slash belongs to a path.
            Some((host, path)) if !host.contains('/') => on_server(&format!("{host}/{}", path.trim_start_matches('/')), None),
            _ => return local(rest, common),
        },
    };
    without_ending(&address).to_owned()
}

fn default_port(scheme: &str) -> Option<&'static str> {
    match scheme {
        "https" => Some("443"),
        "http" => Some("80"),
        "ssh" | "git+ssh" | "ssh+git" => Some("22"),
        "git" => Some("9418"),
        _ => None,
    }
}

fn on_server(rest: &str, default_port: Option<&str>) -> String {
    let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = server.rsplit_once('@').map_or(server, |(_, host)| host).to_ascii_lowercase();
    let port = default_port.and_then(|port| host.strip_suffix(port)?.strip_suffix(':').map(str::to_owned));
    format!("{}/{path}", port.unwrap_or(host))
}

/// The path of a repository on this machine, resolved if it exists.
fn local(path: &str, common: &Path) -> String {
    // A relative path starts at the work tree, or at the directory of a bare repository.
    let start = if common.file_name().is_some_and(|name| name == ".git") { common.parent() } else { Some(common) };
    let path = start.unwrap_or(common).join(path);
    let path = path.canonicalize().unwrap_or(path);
    without_ending(&path.to_string_lossy()).to_owned()
}

fn without_ending(address: &str) -> &str {
    let address = address.trim_end_matches('/');
    address.strip_suffix("/.git").or_else(|| address.strip_suffix(".git")).unwrap_or(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: &str) {
        assert_eq!(normalised(url, Path::new("/no/such/clone/.git")), expected, "{url}");
    }

    #[test]
    fn all_ways_to_reach_a_repository_are_one_address() {
        for url in [
            "https://example.org/team/app",
            "https://user:secret@Example.org:443/team/app.git",
            "http://example.org/team/app.git/",
            "ssh://git@example.org:22/team/app.git",
            "git@example.org:team/app.git",
            "example.org:/team/app",
            "git://example.org/team/app",
        ] {
            check(url, "example.org/team/app");
        }
    }

    #[test]
    fn another_repository_is_another_address() {
        check("https://example.org/fork/app", "example.org/fork/app");
        check("https://example.org:8443/team/app", "example.org:8443/team/app");
        check("https://example.org/team/App", "example.org/team/App");
    }

    #[test]
    fn a_path_is_that_of_the_repository() {
        check("/srv/app.git", "/srv/app");
        check("file:///srv/app/.git", "/srv/app");
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for name in ["origin.git", "clone/.git"] {
            std::fs::create_dir_all(top.join(name)).unwrap();
        }
        assert_eq!(normalised("../origin.git", &top.join("clone/.git")), top.join("origin").display().to_string());
    }
}
