"""Archives that are the same, byte for byte, whenever the same files are packed."""

import gzip
import io
import tarfile
from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    name: str
    content: bytes
    is_program: bool = False

    @property
    def mode(self) -> int:
        return 0o755 if self.is_program else 0o644


def tar_gz(files: list[File], moment: int, directories: bool = False) -> bytes:
    """A compressed tar file; with an entry for each directory if asked."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in _directories(files) if directories else []:
            entry = _entry(name, moment)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for file in files:
            entry = _entry(file.name, moment)
            entry.size, entry.mode = len(file.content), file.mode
            tar.addfile(entry, io.BytesIO(file.content))
    return gzip.compress(packed.getvalue(), compresslevel=9, mtime=moment)


def _entry(name: str, moment: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.mtime, entry.uname, entry.gname = moment, "root", "root"
    return entry


def _directories(files: list[File]) -> list[str]:
    names = set()
    for file in files:
        parts = file.name.split("/")[:-1]
        names.update("/".join(parts[: end + 1]) for end in range(len(parts)))
    return sorted(names - {"."})
