//! `surehand mcp`: the MCP server.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

use anyhow::Context;
use surehand_adapters::mcp::{self, Endpoint, NamedConversation, OpenRoot, Token};
use surehand_engine::core::EditDialect;

use crate::{args::McpArgs, workspace};

/// The variable that holds the token, unless `--token-env` names another one.
const TOKEN: &str = "SUREHAND_MCP_TOKEN";

/// Fixed, because clients are configured with the address.
const DEFAULT_PORT: u16 = 7873;

pub(crate) fn run(args: &McpArgs) -> anyhow::Result<()> {
    // A wrong address or token is reported before anything is opened.
    let endpoint = args.http.as_ref().map(|address| endpoint(args, address)).transpose()?;
    let workspace = workspace::open_in_fleet(&args.place)?;
    workspace.start_watching();
    let dialects = args.dialects.clone().unwrap_or_else(|| EditDialect::ALL.into());
    let open: OpenRoot = Box::new(|root| workspace::open_in_fleet(&workspace::at(root)).map_err(|error| format!("{error:#}")));
    match endpoint {
        Some(endpoint) => {
            anstream::eprintln!("{}", welcome(&endpoint, &workspace.path().display().to_string()));
            mcp::serve_http(workspace, open, &dialects, endpoint).context("the server failed")
        }
        None => {
            let named = NamedConversation::in_environment(|name| std::env::var(name).ok());
            mcp::serve_stdio(workspace, open, &dialects, named).context("the connection failed")
        }
    }
}

fn endpoint(args: &McpArgs, address: &str) -> anyhow::Result<Endpoint> {
    let address = address_of(address)?;
    Ok(Endpoint::bind(address, token(args)?, &args.allow_origin)?)
}

/// The token from the environment, or a new one, which is printed.
fn token(args: &McpArgs) -> anyhow::Result<Option<Token>> {
    let name = args.token_env.as_deref().unwrap_or(TOKEN);
    match std::env::var(name) {
        Ok(secret) => {
            let why = || format!("{name}: not a token: it needs 8 letters or more, without spaces");
            Token::new(&secret).with_context(why).map(Some)
        }
        Err(_) if args.token_env.is_some() => anyhow::bail!("{name}: there is no such variable in the environment"),
        Err(_) if args.token => {
            let token = Token::generate().context("cannot generate a token")?;
            anstream::eprintln!("token: {}", token.secret());
            Ok(Some(token))
        }
        Err(_) => Ok(None),
    }
}

/// Parses an address: host and port, only one of them, or neither.
fn address_of(typed: &str) -> anyhow::Result<SocketAddr> {
    if typed.is_empty() {
        return Ok((Ipv4Addr::LOCALHOST, DEFAULT_PORT).into());
    }
    if let Ok(port) = typed.trim_start_matches(':').parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let found = typed.to_socket_addrs().or_else(|_| (typed, DEFAULT_PORT).to_socket_addrs());
    let mut found = found.with_context(|| format!("{typed}: not an address: write 127.0.0.1:{DEFAULT_PORT}, say"))?;
    found.next().with_context(|| format!("{typed}: has no address"))
}

fn welcome(endpoint: &Endpoint, root: &str) -> String {
    let url = endpoint.url();
    let header = if endpoint.has_token() { " --header \"Authorization: Bearer TOKEN\"" } else { "" };
    format!(
        "surehand: serving {root} at {url}\n  Claude Code: claude mcp add --transport http surehand {url}{header}\n  Ctrl-C ends it."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(typed: &str, expected: &str) {
        assert_eq!(address_of(typed).unwrap().to_string(), expected);
    }

    #[test]
    fn an_address_may_be_typed_in_part() {
        check("", "127.0.0.1:7873");
        check("9000", "127.0.0.1:9000");
        check(":9000", "127.0.0.1:9000");
        check("127.0.0.2", "127.0.0.2:7873");
        check("0.0.0.0:9000", "0.0.0.0:9000");
        check("[::1]:9000", "[::1]:9000");
        assert!(address_of("not an address").is_err());
    }
}
