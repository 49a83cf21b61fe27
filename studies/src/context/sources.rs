//! A generated repository: source files in several languages and directories, short and long ones, some directories
//! with instructions. The files have no meaning, but look like code to a tokenizer.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use surehand_testkit::rng::Rng;

/// A directory in which one kind of file is.
#[derive(Debug, Clone)]
pub(super) struct Area {
    /// Relative to the root.
    pub directory: &'static str,
    pub language: Language,
    /// The paths of its files.
    pub files: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    Python,
    TypeScript,
    Go,
    Yaml,
    Markdown,
}

const AREAS: [(&str, Language); 25] = [
    ("crates/billing/src", Language::Rust),
    ("crates/billing/src/export", Language::Rust),
    ("crates/billing/tests", Language::Rust),
    ("crates/ledger/src", Language::Rust),
    ("crates/ledger/src/store", Language::Rust),
    ("crates/server/src/routes", Language::Rust),
    ("crates/server/src/auth", Language::Rust),
    ("web/src/checkout", Language::TypeScript),
    ("web/src/account", Language::TypeScript),
    ("web/src/shared/forms", Language::TypeScript),
    ("web/src/shared/state", Language::TypeScript),
    ("web/tests", Language::TypeScript),
    ("reports", Language::Python),
    ("reports/monthly", Language::Python),
    ("reports/loaders", Language::Python),
    ("reports/tests", Language::Python),
    ("gateway", Language::Go),
    ("gateway/internal/transport", Language::Go),
    ("gateway/internal/limits", Language::Go),
    ("gateway/cmd/gatewayd", Language::Go),
    ("deploy/staging", Language::Yaml),
    ("deploy/production", Language::Yaml),
    ("docs", Language::Markdown),
    ("docs/guide", Language::Markdown),
    ("docs/decisions", Language::Markdown),
];

const INSTRUCTED: [&str; 7] = ["", "crates/", "crates/ledger/", "web/", "web/src/shared/", "reports/", "gateway/"];

/// So few files leave no directory empty.
pub(crate) const FEWEST_FILES: usize = AREAS.len() + INSTRUCTED.len() + 1;

/// Nouns for the names of things.
pub(super) const NOUNS: [&str; 36] = [
    "account",
    "address",
    "amount",
    "balance",
    "batch",
    "budget",
    "cache",
    "client",
    "currency",
    "customer",
    "cursor",
    "deadline",
    "discount",
    "entry",
    "event",
    "export",
    "invoice",
    "journal",
    "key",
    "limit",
    "message",
    "order",
    "page",
    "payment",
    "queue",
    "record",
    "refund",
    "request",
    "retry",
    "session",
    "shipment",
    "statement",
    "token",
    "transfer",
    "user",
    "window",
];

/// Verbs for the names of functions.
pub(super) const VERBS: [&str; 24] = [
    "apply", "build", "check", "close", "collect", "compute", "convert", "create", "decode", "fetch", "find", "format", "load",
    "merge", "notify", "open", "parse", "read", "remove", "render", "resolve", "send", "update", "validate",
];

/// Writes a file and the directories above it.
fn create(root: &Path, path: &str, content: &str) -> Result<()> {
    let path = root.join(path);
    let directory = path.parent().expect("a path below the root has a parent");
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    fs::write(&path, content).with_context(|| path.display().to_string())
}

/// Creates a repository with this many files.
pub(super) fn lay_out(root: &Path, files: usize, rng: &mut Rng) -> Result<Vec<Area>> {
    let mut areas: Vec<Area> =
        AREAS.iter().map(|&(directory, language)| Area { directory, language, files: Vec::new() }).collect();
    for directory in INSTRUCTED {
        create(root, &format!("{directory}AGENTS.md"), &instructions(directory, rng))?;
    }
    create(root, "README.md", &Language::Markdown.source(60, rng))?;
    for file in INSTRUCTED.len() + 1..files {
        let area = &mut areas[file % AREAS.len()];
        let path = format!("{}/{}", area.directory, area.language.file_name(file, rng));
        // Most files are short, and some are very long.
        let lines = 20 + (580.0 * rng.unit().powf(2.5)) as usize;
        create(root, &path, &area.language.source(lines, rng))?;
        area.files.push(path);
    }
    Ok(areas)
}

fn instructions(directory: &str, rng: &mut Rng) -> String {
    let place = if directory.is_empty() { "this repository" } else { directory };
    let mut text = format!("# Work in {place}\n\n");
    for _ in 0..rng.within(3..7) {
        let rule = *rng.pick(&[
            "- Every $a has a test that fails without it; $v it in the same change.",
            "- Do not $u a $b in a loop: $v them together, and say how many there were.",
            "- Errors name the $a and the $b, and what to do next.",
            "- The $a is public: what it is called stays.",
            "- Run the checks of $b before a task is completed.",
        ]);
        text.push_str(&fill(rule, rng));
        text.push('\n');
    }
    text
}

impl Language {
    /// A name for a file, unique for its number.
    pub(super) fn file_name(self, number: usize, rng: &mut Rng) -> String {
        let ending = match self {
            Self::Rust => "rs",
            Self::Python => "py",
            Self::TypeScript => "ts",
            Self::Go => "go",
            Self::Yaml => "yaml",
            Self::Markdown => "md",
        };
        format!("{}_{}_{number}.{ending}", rng.pick(&NOUNS), rng.pick(&VERBS))
    }

    /// A file with this many lines, or a few more.
    pub(super) fn source(self, lines: usize, rng: &mut Rng) -> String {
        let mut text = fill(self.opening(), rng);
        while text.lines().count() < lines {
            text.push_str(&self.block(rng));
        }
        text
    }

    /// One unit of a file: a function, a section, or the like.
    pub(super) fn block(self, rng: &mut Rng) -> String {
        let (head, body, tail) = self.parts();
        let mut block = head.to_owned();
        for _ in 0..rng.within(2..9) {
            block.push_str(rng.pick::<&str>(body));
        }
        block.push_str(tail);
        fill(&block, rng)
    }

    fn opening(self) -> &'static str {
        match self {
            Self::Rust => "//! The $a of a $b.\n\nuse std::collections::HashMap;\n\nuse crate::{$a::$A, $b::{$B, $BError}};\n",
            Self::Python => "\"\"\"The $a of a $b.\"\"\"\n\nimport logging\nfrom decimal import Decimal\n\nfrom .$a import $A\n",
            Self::TypeScript => "import { $A } from \"./$a\";\nimport type { $B } from \"../$b\";\n",
            Self::Go => "package $a\n\nimport (\n\t\"context\"\n\t\"fmt\"\n\t\"time\"\n)\n",
            Self::Yaml => "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: $a-$b\n",
            Self::Markdown => "# How to $v a $a\n\nThis page is about the $a and what becomes of it.\n",
        }
    }

    /// How a block begins, the lines that it may hold, and how it ends.
    fn parts(self) -> (&'static str, &'static [&'static str], &'static str) {
        match self {
            Self::Rust => (
                "\n/// Gives the $a of a $b, or says why there is none.\npub fn $u_$a($b: &$B, limit: usize) -> Result<$A, $AError> {\n",
                &[
                    "    let $a = $b.$v_$c(limit + $#)?;\n",
                    "    if $a.len() > $# || $b.is_empty() {\n        return Err($AError::$C { limit, found: $a.len() });\n    }\n",
                    "    for (index, $c) in $a.iter().enumerate().skip($#) {\n        self.$b.$v($c, index)?;\n    }\n",
                    "    // A $c that was never closed would be counted twice.\n",
                    "    let total: u64 = $a.values().map(|$c| $c.$v() * $#).sum();\n",
                    "    self.$c.entry($b.id()).or_default().push($A::new($#));\n",
                    "    tracing::debug!(limit, total, \"$v $a of $b\");\n",
                ],
                "    Ok($a.with_$c($#))\n}\n",
            ),
            Self::Python => (
                "\n\ndef $u_$a($b, limit=$#):\n    \"\"\"Gives the $a of a $b.\"\"\"\n",
                &[
                    "    $a = $b.$v_$c(limit=limit, page=$#)\n",
                    "    if not $a or len($a) > $#:\n        raise $AError(f\"no $a for {$b.id}\")\n",
                    "    for index, $c in enumerate($a):\n        logger.debug(\"$v %s of %s\", $c, index)\n",
                    "    total = sum(Decimal($c.$b) for $c in $a if $c.open)\n",
                    "    $b.$c = {key: value for key, value in $a.items() if value > $#}\n",
                ],
                "    return $A($b, $a, limit)\n",
            ),
            Self::TypeScript => (
                "\n/** Gives the $a of a $b. */\nexport async function $u$A($b: $B, limit = $#): Promise<$A> {\n",
                &[
                    "  const $a = await $b.$v$C({ limit, page: $# });\n",
                    "  if ($a.length > $# || !$b.open) {\n    throw new $AError(`no $a for ${$b.id}`);\n  }\n",
                    "  for (const [index, $c] of $a.entries()) {\n    this.$b.$v($c, index);\n  }\n",
                    "  const total = $a.reduce((sum, $c) => sum + $c.$b, $#);\n",
                    "  state.$c = { ...state.$c, [$b.id]: $a };\n",
                ],
                "  return { ...$a, limit };\n}\n",
            ),
            Self::Go => (
                "\n// $V$A gives the $a of a $b.\nfunc $V$A(ctx context.Context, $b *$B, limit int) (*$A, error) {\n",
                &[
                    "\t$a, err := $b.$V$C(ctx, limit+$#)\n\tif err != nil {\n\t\treturn nil, fmt.Errorf(\"$v $a: %w\", err)\n\t}\n",
                    "\tif len($a) > $# {\n\t\treturn nil, Err$A\n\t}\n",
                    "\tfor index, $c := range $a {\n\t\t$b.$V($c, index)\n\t}\n",
                    "\tctx, cancel := context.WithTimeout(ctx, $#*time.Second)\n\tdefer cancel()\n",
                ],
                "\treturn &$A{Limit: limit}, nil\n}\n",
            ),
            Self::Yaml => (
                "---\n$a:\n  name: $a-$b\n",
                &[
                    "  $c:\n    limit: $#\n    $v: true\n",
                    "  - name: $V_$A\n    value: \"$#\"\n",
                    "  # The $c is set by the $b.\n",
                    "  resources:\n    cpu: $#m\n    memory: $#Mi\n",
                ],
                "  replicas: $#\n",
            ),
            Self::Markdown => (
                "\n## The $a\n\n",
                &[
                    "A $a that nobody has asked for is kept until its $b is closed. Whoever wants to $v it earlier sets the $c to $#.\n",
                    "- `$v_$a` gives the $b, and `$u_$c` takes it back.\n",
                    "\n```sh\n$v --$a $# --$b\n```\n\n",
                    "See the page about the $c for what happens when there are more than $#.\n",
                ],
                "\n",
            ),
        }
    }
}

/// Fills in a template: `$a`, `$b`, `$c` are nouns, `$u`, `$v` verbs, `$#` a number. A capital letter gives a
/// capitalized word.
fn fill(template: &str, rng: &mut Rng) -> String {
    let mut text = template.to_owned();
    let mut words: Vec<(&str, &str)> = ["a", "b", "c"].iter().map(|name| (*name, *rng.pick(&NOUNS))).collect();
    words.extend(["u", "v"].iter().map(|name| (*name, *rng.pick(&VERBS))));
    for (name, word) in words {
        let capital = word[..1].to_uppercase() + &word[1..];
        text = text.replace(&format!("${name}"), word).replace(&format!("${}", name.to_uppercase()), &capital);
    }
    while let Some(at) = text.find("$#") {
        text.replace_range(at..at + 2, &rng.within(1..500).to_string());
    }
    text
}
