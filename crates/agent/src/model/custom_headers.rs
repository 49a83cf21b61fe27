//! Headers and query parameters from the settings. A value may hold the key, so no error shows one, and those that look
//! like credentials are redacted like the key.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ureq::http::{HeaderMap, HeaderName};

use super::{
    ModelError,
    api_key::{ApiKey, FoundKey},
    http_client::secret_value,
};

/// Replaced by the key in the value of a header.
const KEY_PLACEHOLDER: &str = "{key}";

/// Headers that frame a request. Another value would break it.
const OUR_HEADERS: [&str; 9] =
    ["accept-encoding", "connection", "content-length", "content-type", "expect", "host", "te", "transfer-encoding", "upgrade"];

/// The headers of the settings. Returns an error if one is not valid, or needs a key and there is none.
pub(super) fn custom_headers(set: &BTreeMap<String, String>, key: Option<&FoundKey>) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    for (name, value) in set {
        let wrong = |why: &str| ModelError::Setup(format!("model.headers: {name:?} {why}"));
        let parsed: HeaderName = name.parse().map_err(|_| wrong("is not the name of a header"))?;
        if OUR_HEADERS.contains(&parsed.as_str()) {
            return Err(wrong("cannot be set: it belongs to the request itself"));
        }
        let value = match key {
            Some(found) => value.replace(KEY_PLACEHOLDER, found.key.reveal()),
            None if value.contains(KEY_PLACEHOLDER) => {
                return Err(wrong(
                    "needs a key, and there is none\nset model.key_file or model.key_command, or SUREHAND_API_KEY in the environment",
                ));
            }
            None => value.clone(),
        };
        let invalid = || wrong("has a value with characters that no header can have (the value is not shown)");
        headers.insert(parsed, secret_value(&value).ok_or_else(invalid)?);
    }
    Ok(headers)
}

/// Whether one of the headers of the settings carries the key, so that it is sent nowhere else.
pub(super) fn carry_key(set: &BTreeMap<String, String>) -> bool {
    set.values().any(|value| value.contains(KEY_PLACEHOLDER))
}

/// The query of an address, with its `?`; empty without parameters.
pub(super) fn query_text(set: &BTreeMap<String, String>) -> Result<String, ModelError> {
    if set.keys().any(String::is_empty) {
        return Err(ModelError::Setup("model.query: a parameter has no name".to_owned()));
    }
    let encode = |text| utf8_percent_encode(text, RESERVED);
    let parameters: Vec<String> = set.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    Ok(if parameters.is_empty() { String::new() } else { format!("?{}", parameters.join("&")) })
}

/// Characters that are encoded in a parameter: all but the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The values that look like credentials by their name, to be redacted.
pub(super) fn credentials(headers: &BTreeMap<String, String>, query: &BTreeMap<String, String>) -> Vec<ApiKey> {
    const SIGNS: [&str; 8] = ["auth", "cookie", "credential", "key", "password", "secret", "signature", "token"];
    let is_credential = |name: &str| SIGNS.iter().any(|sign| name.to_lowercase().contains(sign));
    let values = headers.iter().chain(query).filter(|(name, _)| is_credential(name)).map(|(_, value)| value);
    // Of `Bearer KEY`, the key alone is a secret as well.
    let texts = values.flat_map(|value| [Some(value.as_str()), value.split_whitespace().last()]).flatten();
    texts.filter(|text| !text.contains(KEY_PLACEHOLDER)).filter_map(ApiKey::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[track_caller]
    fn wrong(entry: (&str, &str), expected: &str) {
        let error = custom_headers(&set(&[entry]), None).unwrap_err().to_string();
        assert_eq!(error.lines().next(), Some(expected));
        assert!(entry.1.is_empty() || !error.contains(entry.1), "{error}");
    }

    #[test]
    fn a_header_that_cannot_be_sent_is_named_without_its_value() {
        wrong(("a b", "sk-secret"), "model.headers: \"a b\" is not the name of a header");
        wrong(("", "x-secret"), "model.headers: \"\" is not the name of a header");
        wrong(("grün", "x-secret"), "model.headers: \"grün\" is not the name of a header");
        wrong(("Host", "elsewhere.example"), "model.headers: \"Host\" cannot be set: it belongs to the request itself");
        wrong(("content-length", "7777"), "model.headers: \"content-length\" cannot be set: it belongs to the request itself");
        let value = "model.headers: \"x\" has a value with characters that no header can have (the value is not shown)";
        wrong(("x", "two\r\nlines: y"), value);
        wrong(("x", "\u{7f}nul\0"), value);
        wrong(("api-key", "{key}!"), "model.headers: \"api-key\" needs a key, and there is none");
    }

    #[test]
    fn the_key_goes_where_its_placeholder_is() {
        let key = FoundKey { key: ApiKey::new("sk-secret").unwrap(), source: "model.key_file" };
        let entries = set(&[("api-key", "{key}"), ("X-Title", "mine")]);
        let headers = custom_headers(&entries, Some(&key)).unwrap();
        assert_eq!([&headers["api-key"], &headers["x-title"]].map(|value| value.to_str().unwrap()), ["sk-secret", "mine"]);
        assert!(carry_key(&entries) && !carry_key(&set(&[("x-title", "mine")])));
        assert!(!format!("{headers:?}").contains("secret"), "{headers:?}");
    }

    #[test]
    fn a_query_is_encoded() {
        let query = |entries: &[(&str, &str)]| query_text(&set(entries)).unwrap();
        assert_eq!(query(&[]), "");
        assert_eq!(query(&[("api-version", "2025-04-01-preview"), ("b", "")]), "?api-version=2025-04-01-preview&b=");
        assert_eq!(query(&[("a&b", "ü #?/ =")]), "?a%26b=%C3%BC%20%23%3F%2F%20%3D");
        assert!(query_text(&set(&[("", "x")])).is_err());
    }

    #[test]
    fn what_looks_like_a_credential_is_redacted_with_and_without_its_scheme() {
        let headers = set(&[("Authorization", "Bearer sk-1"), ("x-title", "mine"), ("api-key", "{key}"), ("Cookie", "a=b")]);
        let found = credentials(&headers, &set(&[("api-version", "1"), ("sig-token", "t-1")]));
        let found: Vec<&str> = found.iter().map(ApiKey::reveal).collect();
        assert_eq!(found, ["Bearer sk-1", "sk-1", "a=b", "a=b", "t-1", "t-1"]);
    }
}
