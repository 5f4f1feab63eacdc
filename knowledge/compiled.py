"""Data files, checked once and kept as JSON.

The wheel carries each shard as ``knowledge/_compiled/<shard>.json``. In a checkout a shard
is rebuilt when the content of its YAML files or of its schema changes, and kept in the
user's cache directory; those that ``make`` built (`assistant.precompiled`) lie in
``knowledge/_compiled`` as well, named by their content. Never pickle: a cache file can be
read, and cannot run anything.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knowledge import parts
from knowledge.errors import Fault, FaultsError, alike, nearest_hint

if TYPE_CHECKING:
    from knowledge.yamlfile import Document

ROOT = Path(__file__).parent
DATA = ROOT / "data"
SHIPPED = ROOT / "_compiled"


def shard(name: str, *, shipped: Path = SHIPPED) -> list[dict[str, Any]]:
    """All entries of ``data/<name>.yaml`` or ``data/<name>/*.yaml``, in file order; of the folder `shipped` if it is there.

    Raises FaultsError with every fault of every file.
    """
    entries: list[dict[str, Any]]
    ready = shipped / f"{name}.json"
    if ready.is_file():
        entries = json.loads(ready.read_bytes())
        return entries
    files = shard_files(name)
    schema = ROOT / "schema" / f"{name}.py"
    entries = cached(name, [*files, schema], lambda: build_shard(name, files))
    return entries


def shard_files(name: str) -> list[Path]:
    """The YAML files of a shard."""
    single = DATA / f"{name}.yaml"
    return [single] if single.is_file() else sorted((DATA / name).glob("*.yaml"))


def shard_names() -> list[str]:
    """Every shard: what has a schema and data of its own (runbooks have pages instead)."""
    return sorted(p.stem for p in (ROOT / "schema").glob("*.py") if p.stem != "__init__" and shard_files(p.stem))


def build_shard(name: str, files: Iterable[Path], *, below: Path = ROOT.parent) -> list[dict[str, Any]]:
    """Load and check the YAML files of a shard; faults name them as they are called from `below`."""
    from knowledge import yamlfile

    model = importlib.import_module(f"knowledge.schema.{name}").Entry
    entries: list[dict[str, Any]] = []
    faults: list[Fault] = []
    names: dict[Any, str] = {}
    for path in files:
        document = yamlfile.load(path, str(path.relative_to(below)))
        if document.data is not None and not isinstance(document.data, list):
            document.fault((), "this file holds a list of entries")
            document.data = None
        for index, entry in enumerate(document.data or []):
            check(document, (index,), entry, model)
            if not isinstance(entry, dict):
                continue
            key = entry.get("name", entry.get("code", entry.get("id")))
            if not isinstance(key, str | int) or isinstance(key, bool):
                continue
            if key in names:
                document.fault((index,), f"{key!r} is already defined in {names[key]}")
            names[key] = document.file
            entries.append(entry)
        faults.extend(document.faults)
    if faults:
        raise FaultsError(faults)
    return entries


def check(document: Document, path: tuple[str | int, ...], data: Any, model: Any) -> Any:
    """Validate `data` against a pydantic model; its complaints become faults with a place, each told once."""
    from pydantic import ValidationError

    try:
        return model.model_validate(data)
    except ValidationError as error:
        items = error.errors(include_url=False)
    strange = [tuple(item["loc"]) for item in items if item["type"] == "extra_forbidden"]
    wrong: dict[tuple[str | int, ...], list[Any]] = {}  # one value that is none of several types is one fault
    told = frozenset(document.faulty)  # a value that could not be read at all has no type either
    for item in items:
        loc = tuple(item["loc"])
        if item["type"] == "extra_forbidden":
            known = getattr(model, "model_fields", {}) if len(loc) == 1 else {}
            document.fault((*path, *loc), f"unknown key {loc[-1]!r}", nearest_hint(str(loc[-1]), known))
        elif item["type"] != "missing":
            # Tags of unions stand in `loc` too; only what exists in the file has a place.
            wrong.setdefault(_standing(document, (*path, *loc)), []).append(item)
        elif any(s[:-1] == loc[:-1] and alike(s[-1], loc[-1]) for s in strange):
            document.faulty.add((*path, *loc))  # it is there, misspelt: that is told
        else:
            document.fault((*path, *loc), f"key {loc[-1]!r} is missing")
    for here, same in wrong.items():
        if here not in told:
            first, *others = (item["msg"].removeprefix("Value error, ") for item in same)
            message = " or ".join([first, *(m.removeprefix("Input should be ") for m in others)])
            name = ".".join(map(str, here[len(path) :]))
            document.fault(here, f"{name}: {message}" if name else message, _nearest(same[0]))
    return None


def _nearest(item: Any) -> str:
    """The nearest of the words of which one may stand where something else does."""
    words = re.findall(r"'([^']+)'", str(item.get("ctx", {}).get("expected", "")))
    return nearest_hint(item["input"], words) if isinstance(item["input"], str) and len(words) > 1 else ""


def _standing(document: Document, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The part of `path` that exists in the file."""
    while path and path not in document.marks:
        path = path[:-1]
    return path


def cache_dir() -> Path:
    """Where rebuilt shards are kept: ``$GPUDIAG_CACHE_DIR``, else the platform's cache directory."""
    if chosen := os.environ.get("GPUDIAG_CACHE_DIR"):
        return Path(chosen)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "gpudiag"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "gpudiag"
    return Path.home() / ".cache" / "gpudiag"


def files_under(folder: Path, ending: str) -> list[str]:
    """The files below `folder` whose names end so, in the order of their parts: to make a `Path` takes as long as to read a file."""
    found = (f"{at}{os.sep}{name}" for at, _, names in os.walk(folder) for name in names if name.endswith(ending))
    return sorted(found, key=lambda name: name.replace(os.sep, "\0"))


@cache
def stamp(folder: Path, ending: str) -> bytes:
    """For `fingerprint`: all files below a folder whose names end so. What several things are made from is read once."""
    return fingerprint(files_under(folder, ending)).encode()


def fingerprint(files: Iterable[Path | str | bytes]) -> str:
    """Hash of names and contents of `files`, stamps among them: two checksums and the length, 64 bits and more.

    zlib and not hashlib: loading OpenSSL would cost a tenth of the whole start of `explain`, and
    nobody attacks a developer's own cache.
    """
    low, high, length = 0, 1, 0
    for path in files:
        if isinstance(path, bytes):
            name, content = "", path
        else:
            name, content = os.path.basename(path), _read(path)  # noqa: PTH119 - of both
        for part in (name.encode(), content):
            low, high, length = zlib.crc32(part, low), zlib.adler32(part, high), length + len(part)
    return f"{sys.version_info[0]}{sys.version_info[1]}-{low:08x}{high:08x}-{length:x}"


def _read(path: Path | str) -> bytes:
    """What a file holds; nothing where there is none."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a third of the time of pathlib, 400 times
            return file.read()
    except OSError:
        return b""


def cached(name: str, files: Iterable[Path | str], build: Callable[[], Any], *, shipped: Path = SHIPPED) -> Any:
    """`build()`, or its result kept from an earlier run over the same contents: of the user, or in the folder `shipped`."""
    try:
        path = cache_dir() / f"{name}-{fingerprint(files)}.json"
    except RuntimeError:  # nobody's home: pathlib finds no directory to keep anything in
        return json.loads(json.dumps(build()))
    for place in (path, shipped / path.name):
        try:
            return json.loads(place.read_bytes())["data"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass  # absent, unreadable or damaged: built again, and replaced below
    data = json.loads(json.dumps(build()))
    keep(path, json.dumps({"data": data}, ensure_ascii=False).encode())
    return data


def in_parts(
    name: str, files: Callable[[], Iterable[Path | str | bytes]], build: Callable[[], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """`build()` as `parts`: of the wheel, or kept as `cached` does."""
    ready = SHIPPED / f"{name}.parts"
    try:
        path = ready if ready.is_file() else cache_dir() / f"{name}-{fingerprint(files())}.parts"
    except RuntimeError:  # nobody's home
        return parts.Parts(parts.written(build()))
    for place in (path, SHIPPED / path.name):
        try:
            return parts.opened(place)
        except (OSError, ValueError):
            pass  # absent or damaged: built again, and replaced below
    data = parts.written(build())
    keep(path, data)
    return parts.Parts(data)


_KEPT = 4  # versions of one thing: of two checkouts that are used in turn, neither makes the other build anew


def kept(name: str, key: bytes) -> Path | None:
    """Where bytes that were made from `key` are kept (see `keep`); None when nobody has a home."""
    try:
        return cache_dir() / f"{name}-{zlib.crc32(key):08x}-{zlib.adler32(key):08x}-{len(key):x}.bin"
    except RuntimeError:
        return None


def keep(path: Path, data: bytes) -> None:
    """Keep `data`, in the place of the oldest of what was made from other keys; a cache that cannot be written costs time, never an answer."""
    from knowledge.whole import private_folder, replace_file

    try:
        private_folder(path.parent)
        replace_file(path, data)
        every = path.parent.glob(f"{path.name.rsplit('-', 3)[0]}-*{path.suffix}")
        for old in sorted(every, key=lambda p: p.stat().st_mtime_ns, reverse=True)[_KEPT:]:
            old.unlink(missing_ok=True)
    except OSError:
        pass


def write_shipped(
    folder: Path, extra: Mapping[str, Any] | None = None, split: Mapping[str, Mapping[str, Any]] | None = None
) -> list[Path]:
    """Build every shard into `folder` (the wheel's ``_compiled``), what is `split` in parts."""
    folder.mkdir(parents=True, exist_ok=True)
    shards = {name: build_shard(name, shard_files(name)) for name in shard_names()} | dict(extra or {})
    files = {f"{name}.json": json.dumps(data, ensure_ascii=False, sort_keys=True) for name, data in shards.items()}
    files |= {f"{name}.parts": parts.written(data).decode() for name, data in (split or {}).items()}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in files]
