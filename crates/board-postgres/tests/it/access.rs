//! The users that may access a board, and the connections over which they may.

use std::net::{IpAddr, Ipv4Addr};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use surehand_store::board::{Board, BoardError};
use surehand_testkit::postgres_server::PostgresServer;

use crate::{add_tasks, beat, board, claim, headline};

const ROLES: &str = include_str!("../../../../docs/postgres-roles.sql");

#[track_caller]
fn denied(url: &str) -> String {
    match board(url).news(None) {
        Err(BoardError::Denied { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(url: &str) -> String {
    match board(url).news(None) {
        Err(error @ BoardError::Server { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_wrong_password_is_no_outage_and_is_never_shown() {
    let server = PostgresServer::start(&[]);
    server.query("postgres", "CREATE ROLE me LOGIN SUPERUSER PASSWORD 'pass@word'");
    server.write("data/pg_hba.conf", "local all postgres trust\nhost all all 127.0.0.1/32 scram-sha-256\n");
    server.reload();
    let url = |password: &str| format!("postgres://me{password}@127.0.0.1:{}/postgres", server.port());
    board(&url(":pass%40word")).news(None).unwrap();
    let mut wrong = board(&url(":hunter2"));
    for _ in 0..2 {
        let error = wrong.news(None).unwrap_err();
        assert!(matches!(error, BoardError::Denied { .. }), "{error:?}");
        assert!(error.to_string().contains("password authentication failed"), "{error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
    assert!(denied(&url("")).contains("password missing"));
    let nowhere = refused(&format!("postgres://me:pass%40word@127.0.0.1:{}/nowhere", server.port()));
    assert!(nowhere.contains("\"nowhere\" does not exist"), "{nowhere}");
}

#[test]
fn tls_proves_the_server_to_the_client() {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
    let certificate = params.signed_by(&key, &authority).unwrap();

    let server = PostgresServer::start(&[]);
    let plain = format!("postgres://postgres@127.0.0.1:{}/postgres", server.port());
    let no_tls = refused(&format!("{plain}?sslmode=require"));
    assert!(no_tls.contains("does not support TLS") && no_tls.contains("sslmode=disable"), "{no_tls}");
    board(&plain).news(None).unwrap();

    server.write("data/server.crt", &certificate.pem());
    server.write("data/server.key", &key.serialize_pem());
    let file = server.write("ca.pem", &authority.pem());
    server.write("data/pg_hba.conf", "local all postgres trust\nhostssl all all 127.0.0.1/32 trust\n");
    server.query("postgres", "ALTER SYSTEM SET ssl = on");
    server.reload();
    let root = format!("sslrootcert={}", file.display());
    for good in ["sslmode=require".to_owned(), format!("sslmode=verify-full&{root}"), "sslmode=prefer".to_owned(), root.clone()] {
        let mut board = board(&format!("{plain}?{good}"));
        board.news(None).unwrap_or_else(|error| panic!("{good}: {error}"));
    }
    let untrusted = refused(&format!("{plain}?sslmode=verify-full"));
    assert!(untrusted.contains("certificate") && untrusted.contains("sslrootcert"), "{untrusted}");
    let elsewhere = format!("postgres://postgres@localhost:{}/postgres?sslmode=verify-full&{root}", server.port());
    assert!(refused(&elsewhere).contains("not valid for name"), "the certificate is for the address only");
    let open = denied(&format!("{plain}?sslmode=disable"));
    assert!(open.contains("no encryption"), "{open}");
}

#[test]
fn agents_need_no_more_than_the_documented_rights() {
    let server = PostgresServer::start(&[]);
    server.query("postgres", ROLES);
    server.query("postgres", "CREATE ROLE alice LOGIN IN ROLE surehand_agent; CREATE ROLE mallory LOGIN");
    let url = |user: &str| server.url(user, "postgres");
    let too_early = denied(&url("alice"));
    assert!(too_early.contains("no tables of Surehand yet") && too_early.contains("as their owner"), "{too_early}");
    board(&url("surehand_owner")).news(None).unwrap();

    let mut alice = board(&url("alice"));
    let cursor = alice.news(None).unwrap().cursor;
    add_tasks(&mut alice, 1);
    claim(&mut alice, "c", "a").unwrap();
    alice.heartbeat(&[beat("a")]).unwrap();
    alice.post(&[headline("h")]).unwrap();
    alice.prune(&Default::default()).unwrap();
    assert!(alice.wait(std::time::Duration::ZERO).is_ok());
    assert_eq!(alice.news(Some(&cursor)).unwrap().headlines.len(), 1);
    let creates = "SET ROLE alice; CREATE TABLE surehand.x ()";
    assert!(std::panic::catch_unwind(|| server.query("postgres", creates)).is_err(), "agents create no tables");
    assert!(denied(&url("mallory")).contains("permission denied"));
}
