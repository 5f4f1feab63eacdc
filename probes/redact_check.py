"""What a finished bundle still holds of names that it should not: its files are read anew, as whoever gets it would."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from probes.redact import is_word

_TOKEN = re.compile(rb"[A-Za-z0-9_][\w.:@+/=-]{1,400}")


def left(path: str | Path, names: Iterable[str]) -> list[str]:
    """Those of `names` that stand in a file of the bundle at `path`, or in the name of one, as a word of their own. Words of the field,
    names of one or two letters and plain numbers are not looked for: they stand everywhere."""
    tokens: set[bytes] = set()
    for data in _contents(Path(path)):
        tokens.update(token.lower() for token in _TOKEN.findall(data))
    hay = b"\n".join(sorted(tokens))
    found = []
    for name in dict.fromkeys(names):
        needle = name.lower().encode("utf-8", "surrogatepass")
        if not is_word(name) and needle in hay and re.search(rb"(?<![\w-])" + re.escape(needle) + rb"(?![\w-])", hay):
            found.append(name)
    return found


def _contents(path: Path) -> Iterator[bytes]:
    """Each file's name and bytes. The bundle is our own: it was written a moment ago."""
    if path.is_dir():
        for file in sorted(p for p in path.rglob("*") if p.is_file()):
            yield str(file.relative_to(path)).encode()
            yield file.read_bytes()
    elif path.name.lower().endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                yield name.encode()
                yield archive.read(name)
    else:
        with tarfile.open(path) as archive:
            for member in archive:
                yield member.name.encode()
                held = archive.extractfile(member)
                yield held.read() if held is not None else b""
