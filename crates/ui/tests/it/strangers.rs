//! Requests that are refused: from other users and other sites, to other names, and without the token.

use std::process::{Command, Stdio};

use crate::server::Server;

#[test]
fn the_page_comes_with_a_policy_that_lets_nothing_else_in() {
    let server = Server::start();
    for path in ["/", "/app.js", "/page.css"] {
        let answer = server.request(&format!("GET {path}"), "", "");
        assert_eq!(answer.status, 200, "{path}");
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
            "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
            "x-content-type-options: nosniff",
            "x-frame-options: deny",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
        ] {
            assert!(answer.head.contains(header), "{path}: {header}: {}", answer.head);
        }
        assert!(!answer.body.contains(&server.token), "{path}");
    }
    let answer = server.get("start");
    assert!(answer.head.contains("content-type: application/json") && answer.head.contains("cache-control: no-store"));
}

#[test]
fn only_files_of_the_page_are_served() {
    let server = Server::start();
    for path in ["/../Cargo.toml", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/page/app.js", "/.git/config", "/app.js/"] {
        assert_eq!(server.request(&format!("GET {path}"), "", "").status, 404, "{path}");
    }
}

#[test]
fn without_the_token_there_is_no_data() {
    let server = Server::start();
    for headers in ["", "authorization: Bearer \r\n", "authorization: Bearer 0000\r\n", "cookie: token=1\r\n"] {
        for question in ["start", "feed", "file?path=a.txt", "runs"] {
            assert_eq!(server.request(&format!("GET /api/{question}"), headers, "").status, 401, "{headers:?} {question}");
        }
    }
    let guess = format!("authorization: Bearer {}x\r\n", server.token);
    assert_eq!(server.request("GET /api/start", &guess, "").status, 401);
}

#[test]
fn other_sites_and_other_names_are_refused_with_the_token_as_well() {
    let server = Server::start();
    let token = server.authorization();
    let with = |header: &str| server.request("GET /api/start", &format!("{token}{header}\r\n"), "").status;
    assert_eq!(with("origin: http://attacker.example"), 403);
    assert_eq!(with("origin: null"), 403);
    assert_eq!(with("sec-fetch-site: cross-site"), 403);
    assert_eq!(with(&format!("origin: http://{}", server.address)), 200);
    let rebound = format!("GET /api/start HTTP/1.1\r\nhost: attacker.example\r\nconnection: close\r\n{token}\r\n");
    assert_eq!(server.exchange(&rebound).status, 421);
    let old = format!("GET /api/start HTTP/1.0\r\n{token}\r\n");
    assert_eq!(server.exchange(&old).status, 421, "without a host");
}

#[test]
fn a_body_has_a_limit() {
    let server = Server::start();
    let headers = server.authorization() + "content-type: application/json\r\n";
    let large = format!("{{\"act\":\"{}\"}}", "x".repeat(100_000));
    assert_eq!(server.request("POST /api/act", &headers, &large).status, 413);
}

/// Sends a request as the user `nobody`.
const CLIENT: &str = "exec 3<>/dev/tcp/${1%:*}/${1##*:} && printf '%s' \"$2\" >&3 && head -n 1 <&3";

#[test]
fn another_user_is_refused_even_with_the_token() {
    let server = Server::start();
    let as_nobody = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--clear-groups"]).args(arguments).stderr(Stdio::null());
        command.output()
    };
    if !as_nobody(&["true"]).is_ok_and(|output| output.status.success()) {
        eprintln!("not run: needs root and setpriv");
        return;
    }
    let request =
        format!("GET /api/start HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{}\r\n", server.address, server.authorization());
    let output = as_nobody(&["bash", "-c", CLIENT, "bash", &server.address, &request]).unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("HTTP/1.1 403"), "{output:?}");
    assert_eq!(server.exchange(&request).status, 200, "the same from this user");
}
