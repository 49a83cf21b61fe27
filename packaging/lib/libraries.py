"""Installs the packages that embed Surehand, and runs their tests against what is installed."""

import os
import re
import shutil
import subprocess
import venv
from pathlib import Path

from . import project
from .install import environment, only, quiet, registry

BINDINGS = project.ROOT / "bindings"
GUIDE = project.ROOT / "docs/guide/embed.md"


def python_sdk(packages: Path, prefix: Path, home: Path) -> str:
    venv.create(prefix, with_pip=True)
    python = prefix / "bin/python"
    quiet([python, "-m", "pip", "install", "--no-index", only(packages, "surehand_sdk-*.whl")], environment(home))
    quiet([python, "-c", "import surehand; surehand.Workspace('.').close()"], environment(home))
    tests = _copy(BINDINGS / "python/tests", prefix / "tests")
    quiet([python, "-m", "pip", "install", "--quiet", "-r", tests / "requirements.txt"], os.environ | {"HOME": str(home)})
    examples = _copy(BINDINGS / "python/examples", prefix / "examples")
    variables = environment(home) | {"SUREHAND_EXAMPLES": str(examples), "SUREHAND_GUIDE": str(shutil.copy(GUIDE, prefix))}
    return _last_line([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests], variables, tests)


def node_sdk(packages: Path, prefix: Path, home: Path) -> str:
    tests = _copy(BINDINGS / "node/tests", prefix)
    for example in (BINDINGS / "node/examples").iterdir():
        shutil.copy(example, tests)
    (code,) = (block for block in re.findall(r"```ts\n(.*?)```", GUIDE.read_text(), re.DOTALL) if "function write" in block)
    (tests / "guide.mts").write_text(code + "\nexport { view, write };\n")
    with registry(packages, home) as settings:
        # Our packages come from these files, and what the tests need besides them from where npm always gets it.
        (tests / ".npmrc").write_text(f"@surehand:registry={settings['npm_config_registry']}\n")
        cache = {"npm_config_cache": settings["npm_config_cache"], "npm_config_update_notifier": "false"}
        quiet(["npm", "install", "--no-audit", "--no-fund", f"--prefix={tests}", "@surehand/sdk"], os.environ | cache)
    (tests / ".npmrc").unlink()
    for config in ["tsconfig.json", "tsconfig.example.json"]:
        quiet([tests / "node_modules/.bin/tsc", "--project", tests / config], environment(home))
    files = sorted(str(path) for path in tests.glob("*.test.mjs"))
    return _last_line(["node", "--expose-gc", "--test", "--test-reporter=tap", *files], environment(home), tests)


def _copy(tests: Path, to: Path) -> Path:
    shutil.copytree(tests, to, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "node_modules", ".*"))
    return to


def _last_line(command: list, variables: dict[str, str], directory: Path) -> str:
    """Runs tests, and returns how many passed."""
    done = subprocess.run(command, env=variables, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    counts = [line.removeprefix("# ") for line in done.stdout.splitlines() if line.startswith("# pass ") or " passed" in line]
    return counts[-1].strip()


LIBRARIES = {"python-sdk": python_sdk, "node-sdk": node_sdk}
