//! The URL of the servers: the part of libpq's syntax that a board needs.

use std::{net::IpAddr, path::PathBuf, str::FromStr};

use percent_encoding::percent_decode_str;
use surehand_store::board::BoardError;
use tokio_postgres::{
    Config,
    config::{Host, SslMode, SslNegotiation, TargetSessionAttrs},
};

use crate::{
    Patience,
    tls::{CertificateTrust, TlsConnector},
};

const FORM: &str = "write board.url like postgres://USER:PASSWORD@HOST[:PORT][,HOST[:PORT]...]/DATABASE[?sslmode=verify-full], \
    with special characters of the password encoded, such as @ as %40";

/// The options that are passed to the driver unchanged. The name of any other option could be a part of a password, so
/// errors do not repeat it.
const PASSED_ON: [&str; 8] = ["user", "password", "dbname", "options", "application_name", "host", "port", "sslnegotiation"];

/// The servers of a board, and how to connect to them.
pub(crate) struct ServerUrl {
    /// The URL without the password and the options.
    pub(crate) place: String,
    /// One configuration for each host, because a frozen host must not use up the time of the other hosts.
    pub(crate) hosts: Vec<Config>,
    /// The settings of TLS, where it is used.
    pub(crate) tls: TlsConnector,
}

/// The options that the driver does not support, or not completely.
#[derive(Default)]
struct Options {
    ssl_mode: Option<String>,
    ssl_root: Option<PathBuf>,
    connect_seconds: Option<u64>,
}

fn bad(why: &str) -> BoardError {
    // The message does not repeat the URL, because it may have a password.
    BoardError::BadValue(format!("{why}; {FORM}"))
}

impl ServerUrl {
    /// Parses a URL, and reads the certificates that it names.
    pub(crate) fn parse(url: &str, patience: Patience) -> Result<Self, BoardError> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(bad("the board is not on a PostgreSQL server"));
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (rest, options) = options(query)?;
        let parsed = Config::from_str(&format!("{base}?{rest}")).map_err(|_| bad("the URL of the board cannot be parsed"))?;
        if parsed.get_hosts().is_empty() || ![0, 1, parsed.get_hosts().len()].contains(&parsed.get_ports().len()) {
            return Err(bad("the URL of the board needs a host, and as many ports as hosts"));
        }
        let is_local = parsed.get_hosts().iter().all(is_local);
        let (mode, trust) = security(&options, is_local)?;
        let patience =
            Patience { connect: options.connect_seconds.map_or(patience.connect, std::time::Duration::from_secs), ..patience };
        let hosts = (0..parsed.get_hosts().len()).map(|index| single(&parsed, index, mode, patience)).collect();
        Ok(Self { place: place(&parsed), hosts, tls: TlsConnector::new(trust)? })
    }
}

/// The options for the driver, and ours.
fn options(query: &str) -> Result<(String, Options), BoardError> {
    let (mut rest, mut options) = (Vec::new(), Options::default());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').ok_or_else(|| bad("an option in the URL of the board has no value"))?;
        let value = percent_decode_str(value).decode_utf8().map_err(|_| bad("an option in the URL of the board is not UTF-8"))?;
        match key {
            "sslmode" => options.ssl_mode = Some(value.into_owned()),
            "sslrootcert" => options.ssl_root = Some(PathBuf::from(value.into_owned())),
            "connect_timeout" => {
                let seconds = value.parse().ok().filter(|seconds| (1..=3600).contains(seconds));
                options.connect_seconds = Some(seconds.ok_or_else(|| bad("connect_timeout is not a number of seconds"))?);
            }
            // A board needs a server that can be written, so this is always set.
            "target_session_attrs" if ["any", "read-write", "primary"].contains(&value.as_ref()) => {}
            key if PASSED_ON.contains(&key) => rest.push(pair),
            _ => {
                let known = PASSED_ON.join(", ");
                let why = format!(
                    "the URL of the board has an unknown option; known are {known}, sslmode, sslrootcert, connect_timeout, \
                     target_session_attrs=read-write"
                );
                return Err(bad(&why));
            }
        }
    }
    Ok((rest.join("&"), options))
}

/// How to use TLS. Without an option, a server on another machine must prove its identity, unlike with libpq.
fn security(options: &Options, is_local: bool) -> Result<(SslMode, CertificateTrust), BoardError> {
    let verified = || options.ssl_root.clone().map_or(CertificateTrust::Platform, CertificateTrust::File);
    Ok(match options.ssl_mode.as_deref() {
        Some("disable") => (SslMode::Disable, CertificateTrust::Any),
        Some("prefer") => (SslMode::Prefer, CertificateTrust::Any),
        None if is_local && options.ssl_root.is_none() => (SslMode::Prefer, CertificateTrust::Any),
        Some("require") => (SslMode::Require, options.ssl_root.clone().map_or(CertificateTrust::Any, CertificateTrust::File)),
        Some("verify-full") | None => (SslMode::Require, verified()),
        Some(_) => return Err(bad("sslmode is one of disable, prefer, require and verify-full")),
    })
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
            name == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
    }
}

fn port(parsed: &Config, index: usize) -> u16 {
    let ports = parsed.get_ports();
    ports.get(index).or(ports.first()).copied().unwrap_or(5432)
}

fn single(parsed: &Config, index: usize, mode: SslMode, patience: Patience) -> Config {
    let mut config = Config::new();
    if let Some(user) = parsed.get_user() {
        config.user(user);
    }
    if let Some(password) = parsed.get_password() {
        config.password(password);
    }
    if let Some(database) = parsed.get_dbname() {
        config.dbname(database);
    }
    if let Some(options) = parsed.get_options() {
        config.options(options);
    }
    let mode = match &parsed.get_hosts()[index] {
        Host::Tcp(name) => {
            config.host(name);
            mode
        }
        Host::Unix(directory) => {
            config.host_path(directory);
            SslMode::Disable
        }
    };
    config
        .port(port(parsed, index))
        .application_name(parsed.get_application_name().unwrap_or("surehand"))
        .ssl_mode(mode)
        .ssl_negotiation(match mode {
            SslMode::Require => parsed.get_ssl_negotiation(),
            _ => SslNegotiation::Postgres,
        })
        .connect_timeout(patience.connect)
        // Detects a peer that has disappeared silently, both while nothing is sent and while something is.
        .keepalives_idle(patience.answer)
        .keepalives_interval(patience.answer / 3)
        .keepalives_retries(3)
        .tcp_user_timeout(patience.answer)
        .target_session_attrs(TargetSessionAttrs::ReadWrite);
    config
}

fn place(parsed: &Config) -> String {
    let hosts = parsed.get_hosts().iter().enumerate().map(|(index, host)| {
        let name = match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(directory) => directory.display().to_string(),
        };
        format!("{name}:{}", port(parsed, index))
    });
    let user = parsed.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let database = parsed.get_dbname().map(|name| format!("/{name}")).unwrap_or_default();
    format!("postgres://{user}{}{database}", hosts.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<ServerUrl, BoardError> {
        ServerUrl::parse(url, Patience::default())
    }

    #[track_caller]
    fn check(url: &str, place: &str, mode: SslMode) {
        let url = parse(url).unwrap();
        assert_eq!((url.place.as_str(), url.hosts[0].get_ssl_mode()), (place, mode));
    }

    #[test]
    fn a_url_names_several_hosts_and_its_place_has_no_password() {
        let url = parse("postgres://me:s%40cret@one,two:6543/team?sslmode=prefer&application_name=x").unwrap();
        assert_eq!(url.place, "postgres://me@one:5432,two:6543/team");
        let hosts: Vec<_> = url.hosts.iter().map(|host| (host.get_hosts()[0].clone(), host.get_ports()[0])).collect();
        assert_eq!(hosts, [(Host::Tcp("one".to_owned()), 5432), (Host::Tcp("two".to_owned()), 6543)]);
        for host in &url.hosts {
            assert_eq!(host.get_password(), Some("s@cret".as_bytes()));
            assert_eq!(host.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
            assert!(host.get_connect_timeout().is_some());
        }
    }

    #[test]
    fn a_server_elsewhere_must_prove_who_it_is() {
        check("postgres://me@db.example/team", "postgres://me@db.example:5432/team", SslMode::Require);
        check("postgres://me@127.0.0.1/team", "postgres://me@127.0.0.1:5432/team", SslMode::Prefer);
        check("postgresql://me@localhost:1/team?sslmode=disable", "postgres://me@localhost:1/team", SslMode::Disable);
        check("postgres:///team?host=/run/pg&user=me&sslmode=require", "postgres://me@/run/pg:5432/team", SslMode::Disable);
    }

    #[test]
    fn an_error_in_a_url_never_shows_its_password() {
        for url in [
            "mysql://me:hunter2@host/team",
            "postgres://me:hunter2@host:port/team",
            "postgres://me:?hunter2@host/team",
            "postgres://me:?hunter2=@host/team",
            "postgres://me:hunter2@host/team?sslmode=verify-ca",
            "postgres://me:hunter2@host/team?colour=blue",
            "postgres://me:hunter2@host/team?target_session_attrs=read-only",
            "postgres://me:hunter2@host/team?connect_timeout=soon",
            "postgres://me:hunter2@host/team?sslrootcert=/nowhere/ca.pem",
            "postgres://me:hunter2@/team",
            "postgres://me:hunter2@a,b:1,c:2/team?port=1,2",
        ] {
            let error = parse(url).err().unwrap_or_else(|| panic!("{url}"));
            assert!(matches!(error, BoardError::BadValue(_)), "{error:?}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
