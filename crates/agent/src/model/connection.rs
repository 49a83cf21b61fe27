//! Turns settings into a model that can be asked: protocol, address, key and proxy. Nothing is sent here.

use std::collections::BTreeMap;

use ureq::{
    Proxy,
    http::{
        HeaderMap, HeaderValue, Uri,
        header::{CONTENT_TYPE, HeaderName},
    },
};

use super::{
    ChatModel, ModelError, TokenUsage,
    api_key::{self, FoundKey, KeyStore},
    custom_headers,
    generation::GenerationSettings,
    http_client::{HttpClient, secret_value},
    http_model::{AnswerLimit, HttpModel},
    request_options::RequestOptions,
    retry::RetryPolicy,
};

/// The protocol of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelProtocol {
    /// OpenAI's Chat Completions API, which most providers and all local servers offer.
    OpenAi,
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's Responses API.
    Responses,
}

/// How to reach a model.
#[derive(Clone, PartialEq)]
pub struct ModelConnection {
    /// The provider's name for the model.
    pub model: String,
    /// The address, with or without `/v1`. Default: `OPENAI_BASE_URL` or `ANTHROPIC_BASE_URL`, or else the provider's
    /// own address.
    pub url: Option<String>,
    /// The protocol. Default: Anthropic's for names that start with `claude`, OpenAI's for all others.
    pub protocol: Option<ModelProtocol>,
    /// Source of the key, if the environment has none.
    pub key_store: KeyStore,
    /// Prices, for providers that do not report the cost.
    pub prices: TokenPrices,
    /// When and how often to retry.
    pub retry: RetryPolicy,
    /// The limit of an answer, in tokens.
    pub max_output_tokens: u32,
    /// Sampling and effort of the answers.
    pub generation: GenerationSettings,
    /// Headers of each request, besides those of the protocol. `{key}` in a value is replaced by the key.
    pub headers: BTreeMap<String, String>,
    /// Query parameters of each request.
    pub query: BTreeMap<String, String>,
}

/// The default limit of an answer, in tokens.
pub(super) const MAX_OUTPUT_TOKENS: u32 = 16_384;

impl Default for ModelConnection {
    fn default() -> Self {
        Self {
            model: String::new(),
            url: None,
            protocol: None,
            key_store: KeyStore::default(),
            prices: TokenPrices::default(),
            retry: RetryPolicy::default(),
            max_output_tokens: MAX_OUTPUT_TOKENS,
            generation: GenerationSettings::default(),
            headers: BTreeMap::new(),
            query: BTreeMap::new(),
        }
    }
}

/// Prices in dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TokenPrices {
    /// Input tokens that the cache did not have. `None` if the price is unknown.
    pub input: Option<f64>,
    /// Input tokens from the provider's cache. Default: as `input`.
    pub cached: Option<f64>,
    /// Output tokens, including reasoning. `None` if the price is unknown.
    pub output: Option<f64>,
}

impl TokenPrices {
    /// The cost of an answer; `None` unless input and output both have a price. Writing tokens to the cache costs a
    /// quarter more than plain input, as it does at Anthropic, the only provider that counts them.
    pub(super) fn cost_of(&self, usage: &TokenUsage, cache_written: u64) -> Option<f64> {
        let (input, output) = (self.input?, self.output?);
        let fresh = tokens(usage.input.saturating_sub(usage.cached)) + tokens(cache_written) / 4.0;
        let cached = tokens(usage.cached) * self.cached.unwrap_or(input);
        Some((fresh * input + cached + tokens(usage.output) * output) / 1e6)
    }
}

#[expect(clippy::cast_precision_loss, reason = "no run uses 2^53 tokens")]
fn tokens(count: u64) -> f64 {
    count as f64
}

/// Prepares a model. `env` looks up keys, addresses and proxies. A key command is run here, but no thread is
/// started.
pub fn connect(connection: &ModelConnection, env: &dyn Fn(&str) -> Option<String>) -> Result<Box<dyn ChatModel>, ModelError> {
    if connection.model.trim().is_empty() {
        return Err(ModelError::Setup("no model is named".to_owned()));
    }
    let protocol = connection.protocol.unwrap_or_else(|| protocol_for(&connection.model));
    let address = ProviderAddress::resolve(protocol, connection.url.as_deref(), env)?;
    let key = address.find_key(protocol, &connection.key_store, env)?;
    let mut secrets = custom_headers::credentials(&connection.headers, &connection.query);
    secrets.extend(key.iter().map(|found| found.key.clone()));
    let client = HttpClient::new(
        address.endpoint(protocol, &custom_headers::query_text(&connection.query)?)?,
        request_headers(protocol, key.as_ref(), &connection.headers)?,
        connection.retry.idle,
        find_proxy(&address, env)?,
    );
    let options = RequestOptions {
        has_new_limit_name: address.has_new_limit_name(),
        generation: connection.generation,
        origin: format!("{protocol:?} {} {}", address.host(), connection.model),
        ..RequestOptions::new(&connection.model, connection.max_output_tokens)
    };
    Ok(Box::new(HttpModel {
        options,
        client,
        protocol,
        limit: AnswerLimit::for_tokens(connection.max_output_tokens),
        key,
        secrets,
        key_variable: address.provider_variable(protocol).unwrap_or(api_key::OUR_VARIABLE),
        retry: connection.retry,
        prices: connection.prices,
    }))
}

fn protocol_for(model: &str) -> ModelProtocol {
    if model.starts_with("claude") { ModelProtocol::Anthropic } else { ModelProtocol::OpenAi }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ProviderAddress {
    uri: Uri,
    is_default: bool,
}

impl ProviderAddress {
    fn resolve(protocol: ModelProtocol, url: Option<&str>, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, ModelError> {
        let (variable, default) = match protocol {
            ModelProtocol::OpenAi | ModelProtocol::Responses => ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
            ModelProtocol::Anthropic => ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
        };
        let given = url.map(str::to_owned).or_else(|| env(variable)).filter(|url| !url.trim().is_empty());
        let uri = parse_url(given.as_deref().unwrap_or(default))?;
        let is_default = parse_url(default)?.authority() == uri.authority();
        Ok(Self { uri, is_default })
    }

    fn host(&self) -> &str {
        self.uri.host().unwrap_or_default()
    }

    fn is_local(&self) -> bool {
        let host = self.host().trim_start_matches('[').trim_end_matches(']');
        let is_loopback = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        host == "localhost" || host.ends_with(".localhost") || is_loopback
    }

    /// OpenAI's newer models take the limit of an answer only under its new name, which other servers may not know.
    fn has_new_limit_name(&self) -> bool {
        [".openai.com", ".openai.azure.com", ".services.ai.azure.com"].iter().any(|domain| self.host().ends_with(domain))
    }

    /// Where requests are sent. An address without a path gets the usual `/v1`; any other path is kept, since not
    /// every server uses `/v1`.
    fn endpoint(&self, protocol: ModelProtocol, query: &str) -> Result<Uri, ModelError> {
        let text = self.uri.to_string();
        let base = text.trim_end_matches('/');
        let has_path = !self.uri.path().trim_matches('/').is_empty();
        let endpoint = match protocol {
            ModelProtocol::OpenAi if has_path => format!("{}/chat/completions", base.trim_end_matches("/chat/completions")),
            ModelProtocol::OpenAi => format!("{base}/v1/chat/completions"),
            ModelProtocol::Responses if has_path => format!("{}/responses", base.trim_end_matches("/responses")),
            ModelProtocol::Responses => format!("{base}/v1/responses"),
            ModelProtocol::Anthropic => {
                let base = base.strip_suffix("/messages").unwrap_or(base);
                format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base))
            }
        };
        format!("{endpoint}{query}")
            .parse()
            .map_err(|error| ModelError::Setup(format!("{endpoint} is not a valid address: {error}")))
    }

    /// The provider's variable, if its key may be sent to this address: encrypted, or to this machine. To send a key
    /// over plain HTTP, the user has to set our own variable or settings.
    fn provider_variable(&self, protocol: ModelProtocol) -> Option<&'static str> {
        let is_safe = self.uri.scheme_str() == Some("https") || self.is_local();
        is_safe.then(|| api_key::provider_variable(protocol))
    }

    fn find_key(
        &self,
        protocol: ModelProtocol,
        store: &KeyStore,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<FoundKey>, ModelError> {
        let found = api_key::find_key(store, self.provider_variable(protocol), env)?;
        if found.is_none() && self.is_default {
            let (host, theirs, ours) = (self.host(), api_key::provider_variable(protocol), api_key::OUR_VARIABLE);
            return Err(ModelError::Setup(format!(
                "there is no key for {host}\nset model.key_file or model.key_command, or {theirs} (or {ours}) in the environment, or give the \
                 address of a local server"
            )));
        }
        Ok(found)
    }
}

fn parse_url(url: &str) -> Result<Uri, ModelError> {
    let url = url.trim();
    // Do not repeat an address that may contain a password or a key.
    let wrong = |what: &str| {
        let shown = if url.contains(['@', '?']) { "the address" } else { url };
        Err(ModelError::Setup(format!("{shown}: {what}\nwrite it as in https://api.openai.com/v1 or http://localhost:11434/v1")))
    };
    let Ok(uri) = url.parse::<Uri>() else { return wrong("not a valid address") };
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return wrong("an address begins with http:// or https://");
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return wrong(
            "a user or password cannot be part of it; a key goes into model.key_file, model.key_command or an environment variable",
        );
    }
    if uri.host().is_none_or(str::is_empty) {
        return wrong("there is no host in it");
    }
    if uri.query().is_some() {
        return wrong("a query cannot be part of it; its parameters go into model.query");
    }
    if url.contains('#') {
        return wrong("a fragment cannot be part of it");
    }
    Ok(uri)
}

fn request_headers(
    protocol: ModelProtocol,
    key: Option<&FoundKey>,
    set: &BTreeMap<String, String>,
) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // A compressed stream arrives in lumps. An answer that is compressed anyway can be read.
    headers.insert("accept-encoding", HeaderValue::from_static("identity"));
    headers.insert("accept", HeaderValue::from_static("text/event-stream, application/json"));
    if protocol == ModelProtocol::Anthropic {
        headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
    }
    if let Some(found) = key.filter(|_| !custom_headers::carry_key(set)) {
        let key = found.key.reveal();
        let (name, secret) = match protocol {
            ModelProtocol::OpenAi | ModelProtocol::Responses => ("authorization", secret_value(&format!("Bearer {key}"))),
            ModelProtocol::Anthropic => ("x-api-key", secret_value(key)),
        };
        let unfit =
            || ModelError::Setup(format!("the key in {} contains characters that no key can have\nset it again", found.source));
        headers.insert(name, secret.ok_or_else(unfit)?);
    }
    // The user's own come last, and replace ours.
    headers.extend(custom_headers::custom_headers(set, key)?);
    Ok(headers)
}

/// The proxy for an address, from the usual variables; none for this machine. `ureq` would read the environment
/// itself, which holds the keys no more and is not ours to read.
fn find_proxy(address: &ProviderAddress, env: &dyn Fn(&str) -> Option<String>) -> Result<Option<Proxy>, ModelError> {
    if address.is_local() {
        return Ok(None);
    }
    let names = match address.uri.scheme_str() {
        Some("https") => ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
        _ => ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
    };
    let set = |name: &&str| env(name).filter(|value| !value.trim().is_empty());
    let Some((name, value)) = names.iter().find_map(|name| Some((name, set(name)?))) else { return Ok(None) };
    if ["NO_PROXY", "no_proxy"].iter().find_map(set).is_some_and(|list| bypasses_proxy(address.host(), &list)) {
        return Ok(None);
    }
    // Do not repeat the value: it may contain a password.
    let wrong = |_| ModelError::Setup(format!("{name} is not the address of a proxy\nwrite it as in http://proxy.example:3128"));
    Proxy::new(value.trim()).map(Some).map_err(wrong)
}

/// Whether `NO_PROXY` lists a host or one of its parent domains.
fn bypasses_proxy(host: &str, list: &str) -> bool {
    let host = host.to_ascii_lowercase();
    list.split(',').map(|entry| entry.trim().to_ascii_lowercase()).any(|entry| {
        let domain = entry.trim_start_matches('*').trim_start_matches('.');
        entry == "*" || !domain.is_empty() && host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(_: &str) -> Option<String> {
        None
    }

    #[track_caller]
    fn endpoint(protocol: ModelProtocol, url: &str, expected: &str) {
        let address = ProviderAddress::resolve(protocol, Some(url), &nothing).unwrap();
        assert_eq!(address.endpoint(protocol, "").unwrap().to_string(), expected);
    }

    #[test]
    fn an_address_may_end_in_many_ways() {
        use ModelProtocol::{Anthropic, OpenAi, Responses};
        for url in
            ["http://localhost:11434", "http://localhost:11434/", "http://localhost:11434/v1", "http://localhost:11434/v1/"]
        {
            endpoint(OpenAi, url, "http://localhost:11434/v1/chat/completions");
            endpoint(Anthropic, url, "http://localhost:11434/v1/messages");
            endpoint(Responses, url, "http://localhost:11434/v1/responses");
        }
        endpoint(OpenAi, "https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions");
        endpoint(OpenAi, "https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1/chat/completions");
        endpoint(OpenAi, "https://host.example/v1beta/openai/", "https://host.example/v1beta/openai/chat/completions");
        endpoint(Responses, "https://mine.openai.azure.com/openai/v1/", "https://mine.openai.azure.com/openai/v1/responses");
        endpoint(Responses, "https://host.example/v1/responses", "https://host.example/v1/responses");
        endpoint(Anthropic, "https://host.example/anthropic", "https://host.example/anthropic/v1/messages");
        endpoint(Anthropic, "https://host.example/v1/messages", "https://host.example/v1/messages");
    }

    #[test]
    fn the_environment_knows_addresses() {
        let env = |name: &str| (name == "OPENAI_BASE_URL").then(|| "http://box:8000/v1".to_owned());
        let found = |protocol, url| ProviderAddress::resolve(protocol, url, &env).unwrap().uri.to_string();
        assert_eq!(found(ModelProtocol::OpenAi, None), "http://box:8000/v1");
        assert_eq!(found(ModelProtocol::OpenAi, Some("http://other/v1")), "http://other/v1");
        assert_eq!(found(ModelProtocol::Anthropic, None), "https://api.anthropic.com/");
    }

    #[track_caller]
    fn refuses(url: &str, expected: &str) {
        let Err(ModelError::Setup(why)) = parse_url(url) else { panic!("{url} is accepted") };
        assert_eq!(why.lines().next(), Some(expected));
    }

    #[test]
    fn a_bad_address_is_an_error_before_any_request() {
        refuses("localhost:11434", "localhost:11434: an address begins with http:// or https://");
        refuses("ftp://host/", "ftp://host/: an address begins with http:// or https://");
        refuses("http://", "http://: not a valid address");
        refuses("http://a b/", "http://a b/: not a valid address");
        refuses("https://host/v1?key=x", "the address: a query cannot be part of it; its parameters go into model.query");
        refuses("https://host/v1#x", "https://host/v1#x: a fragment cannot be part of it");
        refuses(
            "https://me:hunter2@host/",
            "the address: a user or password cannot be part of it; a key goes into model.key_file, model.key_command or an environment variable",
        );
    }

    #[test]
    fn only_openai_takes_the_new_name_of_the_limit() {
        let is_new = |url| ProviderAddress::resolve(ModelProtocol::OpenAi, Some(url), &nothing).unwrap().has_new_limit_name();
        assert!(is_new("https://api.openai.com/v1") && is_new("https://mine.openai.azure.com/openai/v1"));
        assert!(!is_new("http://localhost:11434") && !is_new("https://api.mistral.ai/v1"));
    }

    #[test]
    fn the_protocol_follows_from_the_name() {
        assert_eq!(protocol_for("claude-sonnet-4-5"), ModelProtocol::Anthropic);
        assert_eq!(protocol_for("gpt-5"), ModelProtocol::OpenAi);
        assert_eq!(protocol_for("anthropic/claude-sonnet-4.5"), ModelProtocol::OpenAi);
        assert_eq!(protocol_for("qwen3:32b"), ModelProtocol::OpenAi);
    }

    #[track_caller]
    fn key(url: &str, set: &[&str], expected: Result<Option<&'static str>, &str>) {
        let env = |name: &str| set.contains(&name).then(|| "secret".to_owned());
        let address = ProviderAddress::resolve(ModelProtocol::OpenAi, Some(url), &env).unwrap();
        let found =
            address.find_key(ModelProtocol::OpenAi, &KeyStore::default(), &env).map(|found| found.map(|found| found.source));
        match (found, expected) {
            (Err(ModelError::Setup(why)), Err(expected)) => assert_eq!(why.lines().next(), Some(expected)),
            (found, expected) => assert_eq!(found.ok(), expected.ok()),
        }
    }

    #[test]
    fn only_the_providers_own_address_needs_a_key() {
        key("https://api.openai.com/v1", &[], Err("there is no key for api.openai.com"));
        key("https://api.openai.com/v1", &["OPENAI_API_KEY"], Ok(Some("OPENAI_API_KEY")));
        key("http://localhost:11434", &[], Ok(None));
    }

    #[test]
    fn a_providers_key_does_not_travel_in_the_open() {
        key("http://192.168.1.7:8000", &["OPENAI_API_KEY"], Ok(None));
        key("http://192.168.1.7:8000", &["OPENAI_API_KEY", "SUREHAND_API_KEY"], Ok(Some("SUREHAND_API_KEY")));
        key("http://127.0.0.1:8000", &["OPENAI_API_KEY"], Ok(Some("OPENAI_API_KEY")));
        key("http://[::1]:8000", &["OPENAI_API_KEY"], Ok(Some("OPENAI_API_KEY")));
        key("https://openrouter.ai/api/v1", &["OPENAI_API_KEY"], Ok(Some("OPENAI_API_KEY")));
    }

    #[test]
    fn the_error_about_an_invalid_key_does_not_show_it() {
        let env = |name: &str| (name == "OPENAI_API_KEY").then(|| "two\nlines".to_owned());
        let error = connect(&ModelConnection { model: "gpt-5".into(), ..ModelConnection::default() }, &env).err().unwrap();
        assert_eq!(error.to_string().lines().next(), Some("the key in OPENAI_API_KEY contains characters that no key can have"));
        assert!(!format!("{error:?}").contains("two"));
    }

    #[track_caller]
    fn goes_through(url: &str, set: &[(&str, &str)], expected: Option<&str>) {
        let env = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let address = ProviderAddress::resolve(ModelProtocol::OpenAi, Some(url), &env).unwrap();
        assert_eq!(find_proxy(&address, &env).unwrap().map(|proxy| proxy.host().to_owned()).as_deref(), expected);
    }

    #[test]
    fn a_proxy_is_used_but_not_to_this_machine() {
        let set = [
            ("HTTPS_PROXY", "http://gate:3128"),
            ("http_proxy", "http://door:3128"),
            ("NO_PROXY", "Inside.example, .lan,,10.0.0.7"),
        ];
        goes_through("https://api.openai.com/v1", &set, Some("gate"));
        goes_through("http://box:8000", &set, Some("door"));
        goes_through("http://localhost:8000", &set, None);
        goes_through("https://inside.example/v1", &set, None);
        goes_through("https://models.inside.example/v1", &set, None);
        goes_through("https://outinside.example/v1", &set, Some("gate"));
        goes_through("https://box.lan/v1", &set, None);
        goes_through("http://10.0.0.7/v1", &set, None);
        goes_through("https://box.lan/v1", &[("HTTPS_PROXY", "gate:3128"), ("no_proxy", "*")], None);
        goes_through("https://api.openai.com/v1", &[], None);
        goes_through("https://api.openai.com/v1", &[("all_proxy", "socks5://sock:1080")], Some("sock"));
    }

    #[test]
    fn the_error_about_a_bad_proxy_does_not_show_its_password() {
        let env = |name: &str| (name == "HTTPS_PROXY").then(|| "gopher://me:hunter2@gate".to_owned());
        let address = ProviderAddress::resolve(ModelProtocol::OpenAi, Some("https://api.openai.com/v1"), &env).unwrap();
        let error = find_proxy(&address, &env).unwrap_err().to_string();
        assert!(error.starts_with("HTTPS_PROXY is not the address of a proxy") && !error.contains("hunter2"), "{error}");
    }

    #[track_caller]
    fn costs(prices: TokenPrices, expected: Option<f64>) {
        let usage = TokenUsage { input: 1_000_000, cached: 400_000, output: 100_000, cost: None };
        assert_eq!(prices.cost_of(&usage, 200_000).map(|cost| (cost * 1e6).round() / 1e6), expected);
    }

    #[test]
    fn cost_needs_the_prices_of_prompt_and_answer() {
        costs(TokenPrices::default(), None);
        costs(TokenPrices { input: Some(1.0), ..TokenPrices::default() }, None);
        // 600,000 tokens are fresh. 200,000 of them are written to the cache, for a quarter of their price on top.
        costs(TokenPrices { input: Some(1.0), cached: Some(0.1), output: Some(5.0) }, Some(0.6 + 0.05 + 0.04 + 0.5));
        costs(TokenPrices { input: Some(1.0), cached: None, output: Some(5.0) }, Some(0.6 + 0.05 + 0.4 + 0.5));
    }
}
