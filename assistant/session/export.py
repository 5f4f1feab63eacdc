"""The answer that stands, as a file: Markdown, HTML, JSON or text; whole or not at all, and over nothing unasked."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.session.steps import Write, Written
from knowledge.text import clean, excerpt
from knowledge.whole import replace_file

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.reply import Reply

SUFFIXES = {"markdown": ".md", "html": ".html", "json": ".json", "text": ".txt"}
_FORMATS = {".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".json": "json", ".txt": "text",
            ".text": "text", ".log": "text"}  # fmt: skip
_OTHERS = re.compile(r"[^A-Za-z0-9._-]+")
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)  # what file systems without hard links say
_TRIES = 1000  # numbered names of one day


def write(step: Write, settings: Settings) -> Written:
    """Write `step.reply`. What stands in the way is told in the result; nothing is raised for the file system's sake."""
    try:
        named = Path(clean(step.path)).expanduser() if step.path else None
        form = format_of(step)
        if not form:
            return Written(str(named), f"{Path(step.path).suffix} is not a format; .md, .html, .json and .txt are")
        target = named or free_name(step.reply, form, settings)
        if trouble := _in_the_way(target):
            return Written(str(target), trouble)
        data = render(step.reply, form, settings).encode()
        if step.replace or named is None:
            replace_file(target, data)
        elif not _put(target, data):
            return Written(str(target), exists=True)
    except (OSError, ValueError, RuntimeError) as error:  # of a name with a NUL, of a ~ that is nobody's
        return Written(excerpt(step.path, 200), str(getattr(error, "strerror", "") or error))
    return Written(str(target))


def format_of(step: Write) -> str:
    """The format that is named, else the one of the path's suffix, else Markdown; empty for a suffix of another kind."""
    suffix = Path(clean(step.path)).suffix.lower()
    return step.format or (_FORMATS.get(suffix, "") if suffix else "markdown")


def render(reply: Reply, form: str, settings: Settings) -> str:
    """`reply` as a document of its own: everything in it, no colour."""
    from assistant.render import reply as shapes
    from assistant.sources import tells

    output = settings.output._replace(format=form, color="never")
    return shapes.show(reply, output, tells, verbose=True)


def free_name(reply: Reply, form: str, settings: Settings) -> Path:
    """A name of its own in the current folder: `usual_name`, numbered when it is taken. OSError when all are."""
    first = usual_name(reply, form, settings)
    names = (first.with_stem(f"{first.stem}-{n}") if n > 1 else first for n in range(1, _TRIES))
    for name in names:
        if not os.path.lexists(name):
            return name
    raise FileExistsError(errno.EEXIST, f"{_TRIES} files called {first} are there")


def usual_name(reply: Reply, form: str, settings: Settings) -> Path:
    """``gpudiag-<host>-<date>.<suffix>``."""
    return Path(f"gpudiag-{_host(reply, settings)}-{_date(reply)}{SUFFIXES[form]}")


def _host(reply: Reply, settings: Settings) -> str:
    from knowledge.observation import Scope

    nodes = [s.id for s in reply.diagnosis.facts.subjects(Scope.NODE) if s.id] if reply.diagnosis else []
    name = (
        nodes[0]
        if len(nodes) == 1
        else f"{len(nodes)}-nodes"
        if nodes
        else settings.machine.name or os.uname().nodename
    )
    return _OTHERS.sub("-", name)[:80].strip("-.") or "node"


def _date(reply: Reply) -> str:
    """The day that the answer is about (UTC), else today."""
    import time

    from assistant.render.times import iso

    as_of = reply.diagnosis.as_of if reply.diagnosis is not None else None
    return iso(as_of if as_of is not None else time.time_ns())[:10]


def _in_the_way(target: Path) -> str:
    """Why nothing can be written there; a plain file is for the person to decide on."""
    if not target.name:
        return "it names no file"
    if not target.parent.is_dir():
        return f"there is no folder {target.parent}"
    if os.path.lexists(target) and (target.is_symlink() or not target.is_file()):
        return "something that is not a plain file has that name"
    return ""


def _put(target: Path, data: bytes) -> bool:
    """Write a new file; False when there is one of that name, also when it has just appeared."""
    if os.path.lexists(target):
        return False
    made = target.with_name(f".{target.name[:100]}.{os.getpid()}")
    try:
        replace_file(made, data)
        os.link(made, target)  # unlike a rename it takes nobody's place
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        made.replace(target)
    finally:
        made.unlink(missing_ok=True)
    return True
