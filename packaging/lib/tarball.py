"""A directory with the program, its manual page and completions, as `.tar.gz`."""

from pathlib import Path

from . import common, project
from .archive import File, tar_gz
from .binary import Binary


def build(binary: Binary, out: Path) -> list[Path]:
    root = f"surehand-{project.version()}-{binary.machine.rust}-linux"
    completions = common.completions(binary).items()
    files = [
        File(f"{root}/surehand", binary.content, is_program=True),
        common.readme(f"{root}/"),
        *common.licenses(f"{root}/"),
        File(f"{root}/man/surehand.1", common.manual(binary)),
        *(File(f"{root}/completions/{common.SHELLS[shell]}", script) for shell, script in completions),
    ]
    path = out / f"{root}.tar.gz"
    path.write_bytes(tar_gz(files, project.moment(), directories=True))
    return [path]
