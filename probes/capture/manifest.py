"""``capture.json``: the raw document of a capture, written at once or not at all, and read back without trust.

Everything but profiler traces is inside it, raw, so that facts can be computed again. Who reads one may have been handed
it by a stranger: what is no number where a number is wanted is left out, never believed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from knowledge.errors import InputError
from knowledge.language import Text
from probes.capture.model import SCHEMA, Aftermath, Part, Process, Python, Target, Window

NAME: Final = "capture.json"
MACHINE: Final = "machine.tar.gz"  # a bundle of the machine at the same time, where it was looked at
MOST: Final = 512 << 20  # bytes: ten seconds of 64 ranks with 300 threads each are a tenth of it
_OWN: Final = re.compile(
    r"(?:trace|memory)(?:-[0-9]+)?\.(?:json|json\.gz|pickle)"
)  # files that a capture makes beside it
_MANY: Final = 4096  # targets


def write(folder: Path, document: Mapping[str, Any]) -> Path:
    """Puts the document into `folder`, at once or not at all. OSError when it cannot be written."""
    from knowledge.whole import replace_file

    path = folder / NAME
    replace_file(path, json.dumps(document, ensure_ascii=True, separators=(",", ": "), default=str).encode())
    return path


def read(path: Path) -> dict[str, Any]:
    """The document at `path`, a file or its folder. InputError when it is none."""
    place = path / NAME if path.is_dir() else path
    try:
        if place.stat().st_size > MOST:
            raise InputError(f"{place} is larger than {MOST >> 20} MiB: no capture is")
        return parsed(place.read_bytes(), str(place))
    except OSError as error:
        raise InputError(
            f"{place}: {error.strerror or error}", hint="gpudiag profile list names the captures"
        ) from None


def parsed(data: bytes | str, name: str = "capture.json") -> dict[str, Any]:
    """The document in `data`. InputError when it is no capture of a kind that this version reads."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is no capture: {error}") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise InputError(f"{name} is no capture: its schema is not {SCHEMA}")
    return found


# --- ours to JSON ------------------------------------------------------------------------------


def plain_target(target: Target) -> dict[str, Any]:
    """A target as the document holds it."""
    return asdict(target)


def plain_part(part: Part) -> dict[str, Any]:
    """A part as the document holds it."""
    return asdict(part) | {
        "item": str(part.item),
        "outcome": str(part.outcome),
        "rung": str(part.rung) if part.rung else None,
    }


def plain_window(window: Window, began: int, ended: int) -> dict[str, Any]:
    """The window with its moments, ns of CLOCK_MONOTONIC."""
    return asdict(window) | {"began": began, "ended": ended}


def plain_aftermath(found: Aftermath | None) -> dict[str, Any] | None:
    """What became of a target."""
    return asdict(found) | {"clean": found.clean} if found is not None else None


# --- JSON to ours ------------------------------------------------------------------------------


def mapping(value: Any) -> dict[str, Any]:
    """`value` when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def rows(value: Any) -> list[dict[str, Any]]:
    """The objects in a list."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def whole(value: Any, default: int = 0) -> int:
    """A whole number that fits 64 bits, else `default`."""
    good = isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63
    return int(value) if good else default


def text(value: Any) -> Text:
    """A sentence in two languages."""
    found = mapping(value)
    en, zh = found.get("en"), found.get("zh")
    return Text(en if isinstance(en, str) else "", zh if isinstance(zh, str) else "")


def targets(document: Mapping[str, Any]) -> list[tuple[Target, dict[str, Any]]]:
    """The targets with their rows, in the order of the document; a row without a pid is none."""
    return [(target, row) for row in rows(document.get("targets"))[:_MANY] if (target := _target(row)) is not None]


def _target(row: Mapping[str, Any]) -> Target | None:
    process = _process(mapping(row.get("process")))
    if process is None:
        return None

    def number(name: str) -> int | None:
        value = row.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31 else None

    helpers = tuple(h for raw in rows(row.get("helpers")) if (h := _process(raw)) is not None)
    gpus = row.get("gpus")
    return Target(
        process, number("rank"), number("local_rank"), number("world_size"), _word(row.get("job")),
        tuple(g for g in gpus if isinstance(g, str)) if isinstance(gpus, list) else (), _word(row.get("why")), helpers,
    )  # fmt: skip


def _process(row: Mapping[str, Any]) -> Process | None:
    pid = row.get("pid")
    if not isinstance(pid, int) or isinstance(pid, bool) or not 0 < pid < 1 << 31:
        return None
    command = row.get("command")
    return Process(
        pid=pid, start=whole(row.get("start")), name=_word(row.get("name")),
        command=tuple(w for w in command if isinstance(w, str)) if isinstance(command, list) else (),
        uid=whole(row.get("uid")), user=_word(row.get("user")), state=_word(row.get("state")), tracer=whole(row.get("tracer")),
        threads=whole(row.get("threads")), parent=whole(row.get("parent")), inner_pid=whole(row.get("inner_pid")),
        contained=row.get("contained") is True, container=_word(row.get("container")), python=_python(row.get("python")),
    )  # fmt: skip


def _python(value: Any) -> Python | None:
    row = mapping(value)
    version = row.get("version")
    if not isinstance(version, list) or len(version) != 2 or not all(isinstance(n, int) for n in version):
        return None
    return Python((version[0], version[1]), _word(row.get("release")), _word(row.get("library")), _word(row.get("torch")) or "absent",
                  row.get("cuda") is True)  # fmt: skip


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


# --- records -----------------------------------------------------------------------------------


def records(folder: Path) -> Iterator[Path]:
    """The folders below `folder` that hold a capture, oldest first by name."""
    try:
        found = sorted(p for p in folder.iterdir() if (p / NAME).is_file() and not p.is_symlink())
    except OSError:
        return
    yield from found


def size(folder: Path) -> int:
    """Bytes that a record takes."""
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink())


def delete(folder: Path) -> list[str]:
    """Takes a record away: the files that are its own, and the folder when nothing else is left in it.

    Returns the names of what was left. InputError when there is no capture, or when a file cannot be removed.
    """
    if folder.is_symlink() or not (folder / NAME).is_file():
        raise InputError(f"{folder} holds no capture, and is left alone")
    try:
        for path in own_files(folder):
            path.unlink(missing_ok=True)
        left = sorted(p.name for p in folder.iterdir())
        if not left:
            folder.rmdir()
    except OSError as error:
        raise InputError(f"{folder} cannot be deleted: {error.strerror or error}") from None
    return left


def own_files(folder: Path) -> list[Path]:
    """The files of a record, `NAME` last: a record that is half deleted is still one."""
    document = read(folder)
    named = [part.get("file") for row in rows(document.get("targets")) for part in rows(row.get("parts"))]
    # the document may be a stranger's, in a folder with files of one's own
    own = (name for name in named if isinstance(name, str) and _OWN.fullmatch(name))
    inside = [p for name in own if (p := trace_path(folder, name)) is not None]
    return [*dict.fromkeys(inside), folder / MACHINE, folder / NAME]


def trace_path(folder: Path, name: str) -> Path | None:
    """Where the file `name` of a record lies; None for a name that leads out of its folder, or to nothing."""
    if not name or Path(name).name != name:
        return None
    path = folder / name
    return path if path.is_file() and not path.is_symlink() else None
