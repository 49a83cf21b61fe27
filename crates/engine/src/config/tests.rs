//! Settings from the user, a repository and the environment.

#![expect(clippy::disallowed_methods, reason = "tests lay out files")]

use std::{
    os::unix::{fs::symlink, net::UnixListener},
    path::Path,
};

use super::*;

/// The settings of a user and of a repository.
struct Place(tempfile::TempDir);

impl Place {
    fn new(user: &str, repository: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for directory in ["home/surehand", "root"] {
            std::fs::create_dir_all(place.path(directory)).unwrap();
        }
        std::fs::write(place.path("home/surehand/surehand.toml"), user).unwrap();
        std::fs::write(place.path("root/surehand.toml"), repository).unwrap();
        place
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn without_repository(user: &str) -> Self {
        let place = Self::new(user, "");
        std::fs::remove_file(place.path("root/surehand.toml")).unwrap();
        place
    }

    fn load(&self, environment: &[(&str, &str)]) -> Result<Config, String> {
        let variable = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let home = self.path("home").display().to_string();
        let environment = environment.iter().copied().chain([("XDG_CONFIG_HOME", &*home)]).map(variable);
        let place = format!("{home}/surehand/");
        Config::load(&self.path("root"), environment).map_err(|error| error.to_string().replace(&place, ""))
    }
}

fn load_user(toml: &str, environment: &[(&str, &str)]) -> Result<Config, String> {
    Place::new(toml, "").load(environment)
}

/// The configuration for these settings of the user and of a repository, and the repository's ignored settings.
fn load_repository(user: &str, repository: &str) -> (Config, Vec<String>) {
    let mut config = Place::new(user, repository).load(&[]).unwrap();
    let ignored = std::mem::take(&mut config.ignored);
    (config, ignored.into_iter().map(|ignored| format!("{}: {}", ignored.what, ignored.why)).collect())
}

#[test]
fn the_environment_wins_over_both_files() {
    let place = Place::new("[limits]\nread_lines = 9\nread_bytes = 90\n", "[limits]\nread_lines = 5\nline_chars = 8\n");
    let config = place.load(&[("SUREHAND_LIMITS_LINE_CHARS", "7"), ("HOME", "x"), ("SUREHAND_LOG", "x")]).unwrap();
    assert_eq!((config.limits.read_lines, config.limits.read_bytes, config.limits.line_chars), (5, 90, 7));
    let config = place.load(&[("SUREHAND_LIMITS_READ_LINES", "3000")]).unwrap();
    assert_eq!((config.limits.read_lines, config.ignored), (3000, vec![]));
}

/// One row for a key: the user's value, then what a repository may set beside it, and what it may not.
type Row = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const ROWS: &[Row] = &[
    ("policy.require_read", "false", &["true"], &["false"]),
    ("policy.require_read", "true", &["true"], &["false"]),
    ("policy.on_change", "\"rebase\"", &["\"refuse\""], &["\"rebase\""]),
    ("policy.on_change", "\"refuse\"", &["\"refuse\""], &["\"rebase\""]),
    ("policy.short_rereads", "true", &["false"], &["true"]),
    ("policy.durability", "\"fast\"", &["\"full\""], &["\"fast\""]),
    ("limits.read_lines", "10", &["1", "9", "10"], &["11", "0", "\"x\""]),
    ("limits.read_bytes", "10", &["9", "10"], &["11"]),
    ("limits.line_chars", "10", &["9", "10"], &["11"]),
    ("limits.file_bytes", "10", &[], &["1", "9", "10", "11"]),
    ("limits.batch_edits", "10", &[], &["1", "9", "10", "11"]),
    ("versions.bytes", "1000", &["1000", "1001", "4000"], &["1", "999", "4001", "9223372036854775807"]),
    ("versions.days", "10", &["10", "11", "40"], &["1", "9", "41"]),
    ("versions.exclude", "[\"*.iso\"]", &[], &["[]", "[\"*\"]"]),
    ("checkpoint.bytes", "10", &[], &["9", "11"]),
    ("checkpoint.file_bytes", "10", &[], &["9", "11"]),
    ("checkpoint.slow", "10", &[], &["9", "11"]),
    (
        "instructions.names",
        "[\"notes\"]",
        &["[]", "[\"AGENTS.md\"]", "[\"CLAUDE.md\", \"Agents.MD\"]"],
        &[
            "[\".env\"]",
            "[\"AGENTS.md\", \".env\"]",
            "[\".env.md\"]",
            "[\".md\"]",
            "[\"id_rsa\"]",
            "[\"a/AGENTS.md\"]",
            "[\"..\\\\AGENTS.md\"]",
            "[\"AGENTS.md.txt\"]",
        ],
    ),
    ("instructions.tokens", "10", &["9", "10"], &["11"]),
    ("instructions.total_tokens", "10", &["9", "10"], &["11"]),
    ("context.mode", "\"snapshot\"", &[], &["\"snapshot\"", "\"history\""]),
    ("context.budget", "1000", &["999", "1000"], &["1001"]),
    ("context.window", "1000", &["999", "1000"], &["1001"]),
    ("model.name", "\"m\"", &[], &["\"n\"", "\"\""]),
    ("model.url", "\"https://example.org\"", &[], &["\"https://example.com\"", "\"\""]),
    ("model.protocol", "\"openai\"", &[], &["\"anthropic\""]),
    ("model.price_input", "1", &[], &["2"]),
    ("model.price_cached", "1", &[], &["2"]),
    ("model.price_output", "1", &[], &["2"]),
    ("model.max_output_tokens", "1000", &[], &["999", "1001"]),
    ("model.seconds", "10", &[], &["9", "11"]),
    ("model.attempts", "2", &[], &["1", "3"]),
    ("model.pause", "1", &[], &["0", "2"]),
    ("model.key_file", "\"/key\"", &[], &["\"/other\"", "\"\""]),
    ("model.key_command", "\"pass show key\"", &[], &["\"curl example.org\"", "\"\""]),
    ("model.headers", "{ x-title = \"mine\" }", &[], &["{ authorization = \"theirs\" }", "{}"]),
    ("model.query", "{ api-version = \"1\" }", &[], &["{ api-version = \"2\" }", "{}"]),
    ("model.temperature", "0.5", &[], &["0", "\"\""]),
    ("model.top_p", "0.5", &[], &["1", "\"\""]),
    ("model.effort", "\"low\"", &[], &["\"max\"", "\"\""]),
    ("policy.claims", "\"refuse\"", &[], &["\"warn\"", "\"refuse\""]),
    ("policy.collisions", "\"refuse\"", &[], &["\"warn\"", "\"refuse\""]),
    ("board.enabled", "false", &[], &["true", "false"]),
    ("board.url", "\"postgresql://mine\"", &[], &["\"postgresql://theirs\"", "\"\""]),
    ("board.hunks", "false", &[], &["true", "false"]),
    ("board.lease", "120", &[], &["60", "120"]),
    ("run.minutes", "10", &[], &["9", "11", "0"]),
    ("run.ask_edits", "true", &[], &["false"]),
    ("commands.allow", "[\"ls\"]", &[], &["[]", "[\"*\"]"]),
    ("commands.writable", "[\"target\"]", &[], &["[]", "[\"/\"]", "[\"target\", \"/tmp\"]"]),
    ("commands.network", "false", &[], &["true"]),
    ("commands.seconds", "10", &[], &["9", "11"]),
    ("commands.output_bytes", "10", &[], &["9", "11"]),
];

#[test]
fn a_repository_makes_a_setting_stricter_and_never_weaker() {
    for (name, user, allowed, ignored) in ROWS {
        let setting = |value: &str| {
            let (section, key) = name.split_once('.').unwrap();
            format!("[{section}]\n{key} = {value}\n")
        };
        let of_user = |value: &str| load_user(&setting(value), &[]).unwrap_or_else(|error| panic!("{error}"));
        for value in *allowed {
            let (config, ignored) = load_repository(&setting(user), &setting(value));
            assert_eq!((config, ignored), (of_user(value), vec![]), "{name} = {value} over {user}");
        }
        for value in *ignored {
            let (config, ignored) = load_repository(&setting(user), &setting(value));
            assert_eq!(config, of_user(user), "{name} = {value} over {user}");
            assert!(matches!(&ignored[..], [only] if only.starts_with(&format!("{name}: "))), "{ignored:?}");
        }
    }
    for key in KEYS {
        let has_row = |allowed: bool| ROWS.iter().any(|row| row.0 == key.name && row.2.is_empty() != allowed);
        assert!(has_row(matches!(key.repository, RepositoryRule::Only { .. })), "{} needs a row", key.name);
    }
}

#[test]
fn ignored_settings_are_named_with_the_reason() {
    let repository = "
        polcy = 1
        [policy]
        require_read = false
        requires_read = true
        durability = 3
        [limits]
        read_lines = 7
        [model]
        url = \"https://example.org\"
        [board]
        url = \"https://example.org\"
        [checkpoint]
    ";
    let (config, mut ignored) = load_repository("", repository);
    ignored.sort();
    assert_eq!(
        ignored,
        [
            "board.url: only you can set it, in your own settings or in the environment",
            "model.url: only you can set it, in your own settings or in the environment",
            "polcy: unknown key; did you mean policy.require_read?",
            "policy.durability: must be \"full\" or \"fast\": 3",
            "policy.require_read: a repository may only set `true`: false",
            "policy.requires_read: unknown key; did you mean policy.require_read?",
        ]
    );
    let limits = Limits { read_lines: 7, ..Limits::default() };
    assert_eq!(config, Config { limits, ..Config::default() }, "the rest counts");
}

#[test]
fn a_malformed_file_is_ignored_as_a_whole() {
    for (toml, why) in [
        ("[limits]\nread_lines = 7\n[policy", "it is not valid TOML: "),
        (&*format!("[limits]\nread_lines = 7\n#{}", "x".repeat(64 * 1024)), "it has more than 65536 bytes"),
        (&*format!("a = {}", "[".repeat(60_000)), "it is not valid TOML: "),
        (&*format!("a = {}", "{a=".repeat(20_000)), "it is not valid TOML: "),
    ] {
        let (config, ignored) = load_repository("[limits]\nread_lines = 9\n", toml);
        assert!(matches!(&ignored[..], [only] if only.starts_with(&format!("surehand.toml: {why}"))), "{ignored:?}");
        assert_eq!(config.limits.read_lines, 9);
    }
    for toml in [format!("{}a = 1", "a.".repeat(30_000)), format!("[{}a]", "a.".repeat(30_000))] {
        let (config, ignored) = load_repository("", &toml);
        assert_eq!((config, ignored.len()), (Config::default(), 1));
    }
}

#[test]
fn text_from_a_clone_is_harmless_in_a_terminal() {
    let (_, ignored) = load_repository("", &format!("\"\\u001b[2J{}\" = 1", "x".repeat(1000)));
    assert!(!ignored[0].contains('\u{1b}') && ignored[0].len() < 500, "{ignored:?}");
}

/// Puts something in the place of the repository's file.
#[track_caller]
fn ignores(put: impl FnOnce(&Path), why: &str) {
    let place = Place::without_repository("[limits]\nread_lines = 9\n");
    put(&place.path("root/surehand.toml"));
    let config = place.load(&[]).unwrap();
    assert_eq!(config.limits.read_lines, 9);
    assert_eq!(config.ignored, [IgnoredSetting { what: "surehand.toml".to_owned(), why: why.to_owned(), line: None }]);
}

#[test]
fn a_clone_cannot_hang_or_fill_us_by_its_file() {
    let link = "it is a link, not a regular file";
    ignores(|path| symlink("/dev/zero", path).unwrap(), link);
    ignores(|path| symlink("/etc/passwd", path).unwrap(), link);
    ignores(|path| symlink("nowhere", path).unwrap(), link);
    ignores(make_fifo, "it is a named pipe, not a regular file");
    ignores(|path| std::fs::create_dir(path).unwrap(), "it is a directory, not a regular file");
    ignores(|path| drop(UnixListener::bind(path).unwrap()), "No such device or address (os error 6)");
    let sparse = |path: &Path| std::fs::File::create(path).unwrap().set_len(100 << 30).unwrap();
    ignores(sparse, "it has more than 65536 bytes");
    ignores(|path| std::fs::write(path, b"\xff").unwrap(), "it is not UTF-8 text");
}

#[test]
fn the_users_file_may_be_a_link_and_must_be_settings() {
    let put = |put: fn(&Path)| {
        let place = Place::new("", "");
        let file = place.path("home/surehand/surehand.toml");
        std::fs::remove_file(&file).unwrap();
        std::fs::write(place.path("dotfile"), "[limits]\nread_lines = 9\n").unwrap();
        put(&file);
        place.load(&[]).map(|config| config.limits.read_lines)
    };
    assert_eq!(put(|file| symlink("../../dotfile", file).unwrap()), Ok(9));
    let refused = |why: &str| Err(format!("surehand.toml: {why}"));
    assert_eq!(put(make_fifo), refused("it is a named pipe, not a regular file"));
    assert_eq!(put(|file| symlink("/dev/zero", file).unwrap()), refused("it is a device, not a regular file"));
    assert_eq!(put(|file| std::fs::write(file, " ".repeat(65_537)).unwrap()), refused("it has more than 65536 bytes"));
}

fn make_fifo(path: &Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, 0o600.into()).unwrap();
}

#[test]
fn the_defaults_are_shown_as_they_are_set() {
    for key in KEYS {
        let mut config = Config::default();
        let table: toml::Table = format!("value = {}", key.default()).parse().unwrap();
        assert!(key.set(&mut config, &table["value"]), "{}", key.name);
        assert_eq!(config, Config::default(), "{}", key.name);
    }
}

#[test]
fn patience_with_a_model_is_a_setting() {
    let model = |toml| load_user(toml, &[("SUREHAND_MODEL_PAUSE", "0.5")]).map(|config| config.model);
    let expected = ModelConfig { seconds: 600, attempts: 2, pause: 0.5, ..ModelConfig::default() };
    assert_eq!(model("[model]\nseconds = 600\nattempts = 2\npause = 3"), Ok(expected));
    let wrong = load_user("[model]\npause = 61", &[]).unwrap_err();
    assert_eq!(wrong, "surehand.toml:2: model.pause must be a number from 0 to 60: 61");
}

#[test]
fn what_a_request_has_besides_the_prompt_is_a_setting() {
    let toml = "[model]\ntemperature = 0\ntop_p = \"\"\neffort = \"high\"\n[model.headers]\nx-title = \"mine\"\n";
    let environment = [("SUREHAND_MODEL_TOP_P", "0.9"), ("SUREHAND_MODEL_QUERY", "api-version=2025-04-01\n\n b = c=d \n")];
    let model = load_user(toml, &environment).unwrap().model;
    assert_eq!((model.temperature, model.top_p), (Some(Sampling(0.0)), Some(Sampling(0.9))));
    assert_eq!(model.effort.as_deref(), Some("high"));
    let text = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    assert_eq!(model.headers, BTreeMap::from([("x-title", "mine")].map(text)));
    assert_eq!(model.query, BTreeMap::from([("api-version", "2025-04-01"), ("b", "c=d")].map(text)));
    for (set, expected) in [
        ("temperature = 2.1", "model.temperature must be a number from 0 to 2, or \"\": 2.1"),
        ("temperature = nan", "model.temperature must be a number from 0 to 2, or \"\": nan"),
        ("top_p = -1", "model.top_p must be a number from 0 to 1, or \"\": -1"),
        (
            "effort = 3",
            "model.effort must be \"none\", \"minimal\", \"low\", \"medium\", \"high\", \"xhigh\", \"max\" or \"\": 3",
        ),
    ] {
        assert_eq!(load_user(&format!("[model]\n{set}"), &[]).unwrap_err(), format!("surehand.toml:2: {expected}"));
    }
}

#[test]
fn no_error_shows_a_header() {
    for set in ["headers = [\"api-key: sk-secret\"]", "headers = { api-key = [\"sk-secret\"] }", "query = \"sk-secret\""] {
        let error = load_user(&format!("[model]\n{set}"), &[]).unwrap_err();
        assert!(error.contains(" must be a table of texts ") && !error.contains("secret\""), "{error}");
        assert!(!error.contains("sk-"), "{error}");
    }
    let error = load_user("", &[("SUREHAND_MODEL_HEADERS", "api-key: sk-secret")]).unwrap_err();
    assert!(error.starts_with("SUREHAND_MODEL_HEADERS: model.headers must be") && !error.contains("sk-"), "{error}");
}

#[test]
fn commands_are_allowed_by_their_first_words() {
    let toml = "[commands]\nallow = [\"cargo test\", \"git status\"]\nseconds = 30\n";
    let config = load_user(toml, &[("SUREHAND_COMMANDS_OUTPUT_BYTES", "100")]).unwrap();
    let allow = ["cargo test", "git status"].map(str::to_owned).to_vec();
    assert_eq!(config.commands, CommandConfig { allow, seconds: 30, output_bytes: 100, ..CommandConfig::default() });
    let config = load_user(toml, &[("SUREHAND_COMMANDS_ALLOW", "make check, ls,")]).unwrap();
    assert_eq!(config.commands.allow, ["make check", "ls"]);
    for entry in ["", "a; b", "a > b", "$a", "A=1"] {
        let error = load_user(&format!("[commands]\nallow = [\"ls\", \"{entry}\"]"), &[]).unwrap_err();
        assert!(error.starts_with("surehand.toml:2: commands.allow must be a list of commands by their first words"), "{error}");
    }
}

#[test]
fn mistakes_are_named_with_what_would_be_right() {
    let error = |toml| load_user(toml, &[]).unwrap_err();
    assert_eq!(
        error("[policy]\nrequired_read = true"),
        "surehand.toml:2: unknown key policy.required_read; did you mean policy.require_read?"
    );
    assert_eq!(error("[limits]\nread_lines = 0"), "surehand.toml:2: limits.read_lines must be a whole number from 1 up: 0");
    assert_eq!(error("[policy]\ndurability = 3"), "surehand.toml:2: policy.durability must be \"full\" or \"fast\": 3");
    assert_eq!(error("[polcy]"), "surehand.toml:1: unknown key polcy; did you mean policy.require_read?");
    assert!(error("[policy").starts_with("surehand.toml: not valid TOML: line 1: "));
    let error = load_user("", &[("SUREHAND_POLICY_DURABLITY", "fast")]).unwrap_err();
    assert_eq!(error, "SUREHAND_POLICY_DURABLITY: unknown key policy.durablity; did you mean policy.durability?");
}

#[test]
fn a_program_sets_keys_by_name() {
    let mut config = Config::default();
    config.set_key("policy.on_change", &serde_json::json!("rebase")).unwrap();
    config.set_key("limits.read_lines", &serde_json::json!(10)).unwrap();
    assert_eq!(config.policy.on_change, OnChange::Rebase);
    let refused = |name: &str, value: serde_json::Value| Config::default().set_key(name, &value).unwrap_err().to_string();
    assert_eq!(
        refused("policy.onchange", serde_json::json!(1)),
        "settings: unknown key policy.onchange; did you mean policy.on_change?"
    );
    assert!(refused("policy.on_change", serde_json::json!(null)).starts_with("settings: policy.on_change must be "));
}
