//! Decides which requests are answered: by the `Host` and `Origin` that a browser sends, against pages of other sites
//! and DNS rebinding, and by the token. Processes of other users are refused before that.

use std::net::SocketAddr;

use hyper::{
    HeaderMap, Method, Request, StatusCode,
    header::{
        ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY,
        WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use surehand_http::{HttpAnswer, Token, plain};

/// The path prefix of all requests that read or change a workspace.
pub(crate) const API: &str = "/api/";

/// Scripts and styles come from the files of the page, and from nothing else. No text becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const OTHER_SITE: &str = "Forbidden: this is for the page of Surehand only";

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

#[derive(Debug)]
pub(crate) struct RequestFilter {
    token: Token,
    /// The names under which a browser on this machine reaches the server.
    hosts: Vec<String>,
}

impl RequestFilter {
    pub(crate) fn new(token: Token, address: SocketAddr) -> Self {
        let port = address.port();
        let hosts = vec![format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}"), address.to_string()];
        Self { token, hosts }
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// Refuses a request by its head, or returns `None`.
    pub(crate) fn refuse<B>(&self, request: &Request<B>) -> Option<HttpAnswer> {
        let headers = request.headers();
        let refused = |status, why: &'static str| Some(plain(status, why));
        if !self.is_host_ours(headers) {
            return refused(StatusCode::MISDIRECTED_REQUEST, "Misdirected Request: this server has another name");
        }
        if !headers.get_all(ORIGIN).iter().all(|origin| self.is_origin_ours(origin)) {
            return refused(StatusCode::FORBIDDEN, OTHER_SITE);
        }
        let is_api = request.uri().path().starts_with(API);
        let is_get = request.method() == Method::GET || request.method() == Method::HEAD;
        let is_post = is_api && request.method() == Method::POST;
        if !is_get && !is_post {
            let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
            return Some(answer);
        }
        if !is_api {
            return None;
        }
        if headers.get(SITE).is_some_and(|site| site != "same-origin") {
            return refused(StatusCode::FORBIDDEN, OTHER_SITE);
        }
        if !self.token.is_shown(headers) {
            let mut answer = plain(StatusCode::UNAUTHORIZED, "Unauthorized: open the address that `surehand ui` has printed");
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return Some(answer);
        }
        if !is_get && !is_json(headers) {
            return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Unsupported Media Type: send application/json");
        }
        None
    }

    fn is_host_ours(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(only), None) = (hosts.next(), hosts.next()) else { return false };
        only.to_str().is_ok_and(|host| self.has_name(host))
    }

    fn has_name(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }

    fn is_origin_ours(&self, origin: &HeaderValue) -> bool {
        let host = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
        host.is_some_and(|host| self.has_name(host))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Adds the headers that restrict a browser to what the page needs.
pub(crate) fn protect(mut answer: HttpAnswer) -> HttpAnswer {
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, path: &str, headers: &[(&str, &str)], expected: u16) {
        let filter = RequestFilter::new(Token::new("s3cret-s3cret").unwrap(), "127.0.0.1:4000".parse().unwrap());
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let status = filter.refuse(&request.body(()).unwrap()).map_or(200, |answer| answer.status().as_u16());
        assert_eq!(status, expected, "{method} {path} {headers:?}");
    }

    const HERE: (&str, &str) = ("host", "127.0.0.1:4000");
    const TOKEN: (&str, &str) = ("authorization", "Bearer s3cret-s3cret");

    #[test]
    fn only_the_names_of_this_machine_are_answered() {
        check("GET", "/", &[HERE], 200);
        check("GET", "/", &[("host", "localhost:4000")], 200);
        check("GET", "/", &[("host", "[::1]:4000")], 200);
        check("GET", "/", &[("host", "attacker.example:4000")], 421);
        check("GET", "/", &[("host", "127.0.0.1:4001")], 421);
        check("GET", "/", &[("host", "127.0.0.1")], 421);
        check("GET", "/", &[], 421);
        check("GET", "/", &[HERE, ("host", "attacker.example")], 421);
    }

    #[test]
    fn other_sites_are_refused_with_the_token_as_well() {
        check("GET", "/api/start", &[HERE, TOKEN, ("origin", "http://127.0.0.1:4000")], 200);
        for origin in ["http://127.0.0.1:4001", "https://127.0.0.1:4000", "http://attacker.example", "null", ""] {
            check("GET", "/api/start", &[HERE, TOKEN, ("origin", origin)], 403);
            check("GET", "/", &[HERE, ("origin", origin)], 403);
        }
        check("GET", "/api/start", &[HERE, TOKEN, ("sec-fetch-site", "same-origin")], 200);
        check("GET", "/api/start", &[HERE, TOKEN, ("sec-fetch-site", "same-site")], 403);
        check("GET", "/api/start", &[HERE, TOKEN, ("sec-fetch-site", "cross-site")], 403);
    }

    #[test]
    fn data_needs_the_token_and_the_page_does_not() {
        check("GET", "/app.js", &[HERE], 200);
        check("GET", "/api/start", &[HERE], 401);
        check("GET", "/api/start", &[HERE, ("authorization", "Bearer s3cret-s3creT")], 401);
        check("GET", "/api/start?token=s3cret-s3cret", &[HERE], 401);
        check("GET", "/api/start", &[HERE, ("cookie", "token=s3cret-s3cret")], 401);
        check("GET", "/api/start", &[HERE, TOKEN], 200);
    }

    #[test]
    fn what_a_form_of_another_site_can_send_changes_nothing() {
        let json = ("content-type", "application/json");
        check("POST", "/api/act", &[HERE, TOKEN, json], 200);
        check("POST", "/api/act", &[HERE, TOKEN, ("content-type", "application/json; charset=utf-8")], 200);
        check("POST", "/api/act", &[HERE, TOKEN], 415);
        check("POST", "/api/act", &[HERE, TOKEN, ("content-type", "text/plain")], 415);
        check("POST", "/api/act", &[HERE, json], 401);
        check("POST", "/", &[HERE, TOKEN, json], 405);
        check("PUT", "/api/act", &[HERE, TOKEN, json], 405);
        check("OPTIONS", "/api/act", &[HERE, ("origin", "http://attacker.example")], 403);
    }
}
