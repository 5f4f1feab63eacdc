"""The captures that are kept: found, listed, shown again, deleted."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from assistant.capture.words import word
from assistant.exits import Exit
from assistant.output import say, write
from knowledge.errors import GpudiagError, InputError, UsageError, nearest_hint
from knowledge.language import Text
from knowledge.text import clean
from probes.capture import manifest

_SHOWN = 20  # captures of a list
_SENTENCE = re.compile(r".+?(?:\.(?= )|。|$)", re.DOTALL)


def home() -> Path:
    """Where captures are kept unless -o says otherwise: beside the history, in the user's data folder."""
    from assistant.store.location import default_path

    return default_path().parent / "captures"


def run(args: argparse.Namespace) -> int:
    """``list``, ``show`` or ``delete``."""
    if args.action == "list":
        return _list(args)
    if not args.files:
        raise UsageError(f"profile {args.action}: which capture?", hint="gpudiag profile list names them")
    if args.action == "delete":
        return _delete(args)
    if len(args.files) > 1:
        raise UsageError("profile show takes one capture", hint=f"gpudiag profile show {args.files[0]}")
    from assistant.capture import answer, looking

    return answer.give(args, looking.load(find(args.files[0]), args.settings))


def find(name: str) -> Path:
    """The folder of the capture called `name`: an id, the beginning of one, ``last``, or a path. InputError with near names."""
    if not name.strip() or "\0" in name:
        raise InputError("no capture is called so", hint="gpudiag profile list names them")
    place = Path(name)
    if place.name == manifest.NAME and _there(place):
        return place.parent
    if _there(place / manifest.NAME):
        return place
    known = [p.name for p in manifest.records(home())]
    if name == "last" and known:
        return home() / max(known)
    matching = [k for k in known if k == name] or [k for k in known if k.startswith(name)]
    if len(matching) == 1:
        return home() / matching[0]
    if matching:
        raise InputError(f"{name} may be {', '.join(matching[:4])}", hint="say more of it")
    raise InputError(
        f"there is no capture {name}",
        hint=nearest_hint(name, known)
        or "gpudiag profile list names them; a folder that holds capture.json is one too",
    )


def _there(path: Path) -> bool:
    """Whether a file lies there that may be seen."""
    try:
        return path.is_file()
    except OSError:  # a name too long, a folder of somebody else's
        return False


# --- list ----------------------------------------------------------------------------------------


def _list(args: argparse.Namespace) -> int:
    from assistant.render.sheet import Paragraph, Table
    from assistant.render.trace_page import Page, Part, show

    lang = args.settings.output.lang
    found = [p for given in (args.files or [str(home())]) for p in _below(Path(given))]
    shown = found if args.verbose else found[-_SHOWN:]  # the newest: each is concluded from again
    entries = [_row(path, args) for path in shown]

    def parts() -> list[Part]:
        if not entries:
            none = Text(
                "No captures are kept. gpudiag profile --pid N makes one.",
                "没有保存的采集。gpudiag profile --pid N 可进行采集。",
            )
            return [Paragraph(none.in_(lang))]
        header = tuple(word(key, lang) for key in ("id", "targets", "size", "paid", "verdict"))
        cells = tuple((e["id"], e["from"], e["size_text"], e["cost"], _first(e["verdict"])) for e in entries)
        more = Text(
            f"{len(found) - len(shown)} older ones with --verbose",
            f"另有 {len(found) - len(shown)} 个更早的，使用 --verbose 查看",
        )
        return [Table(header, cells), *([Paragraph(more.in_(lang))] if len(found) > len(shown) else [])]

    data = {"captures": [{k: v for k, v in e.items() if k != "size_text"} for e in entries]}
    write(show(Page("gpudiag/profile-list/1", data, parts), args.settings.output))
    return Exit.OK


def _first(verdict: str) -> str:
    """The first sentence."""
    found = _SENTENCE.match(verdict)
    return found[0] if found else verdict


def _below(folder: Path) -> list[Path]:
    return [folder] if _there(folder / manifest.NAME) else list(manifest.records(folder))


def _row(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """One line of the list. A record that cannot be read is one that says so."""
    from assistant.capture import looking
    from assistant.render.times import iso, readable
    from assistant.render.trace_units import duration, size
    from assistant.trace.answer import judged

    lang = args.settings.output.lang
    kept = manifest.size(folder)
    row: dict[str, Any] = {
        "id": folder.name,
        "folder": str(folder),
        "size": kept,
        "size_text": size(kept),
        "time": "",
        "from": "",
        "cost": "-",
        "verdict": "",
    }
    try:
        seen = looking.load(folder, args.settings)
    except GpudiagError as error:
        return row | {"verdict": clean(error.message)}
    names = [looking.called(t, lang) for t, _ in seen.targets]
    as_of = manifest.whole(seen.document.get("as_of"))
    longest = [
        n for _, r in seen.targets if isinstance(n := manifest.mapping(r.get("aftermath")).get("longest_ns"), int)
    ]
    said = judged(seen.about, lang).view
    return row | {
        "time": readable(iso(as_of - as_of % 10**9)) if as_of else "",
        "from": ", ".join(names[:2]) + (f" +{len(names) - 2}" if len(names) > 2 else ""),
        "cost": f"<= {duration(max(longest))}" if longest else "-",
        "verdict": f"{said.state_label}  {said.headline}",
    }


# --- delete --------------------------------------------------------------------------------------


def _delete(args: argparse.Namespace) -> int:
    lang = args.settings.output.lang
    folders = [find(name) for name in args.files]
    if not args.yes and not _agreed([p.name for p in folders], lang):
        return Exit.OK
    for folder in folders:
        left = manifest.delete(folder)
        said = Text(f"gpudiag: {folder.name} is deleted", f"gpudiag: 已删除 {folder.name}").in_(lang)
        if left:
            said += Text(f"; left in {folder}: {', '.join(left[:6])}", f"；{folder} 中保留：{', '.join(left[:6])}").in_(
                lang
            )
        say(said, args.quiet)
    return Exit.OK


def _agreed(names: list[str], lang: str) -> bool:
    """Asks. UsageError without somebody who could answer."""
    if sys.stdin is None or not sys.stdin.isatty() or sys.stderr is None:
        raise UsageError("profile delete asks first, and there is no terminal", hint="--yes agrees to it")
    shown = ", ".join(map(clean, names[:6]))
    sys.stderr.write(Text(f"Delete {shown}? [y/N] ", f"删除 {shown}？[y/N] ").in_(lang))
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes", "是")
