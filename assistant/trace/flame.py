"""``gpudiag trace flame``: call stacks from Python down to the kernel, drawn or handed to other tools."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from assistant.exits import Exit
from assistant.output import say, write
from assistant.render.cells import wrap
from assistant.render.labels import aside
from assistant.render.sheet import Heading
from assistant.render.trace_page import Part, Plot, squeezed
from assistant.trace.answer import answer, commands, notes, quoted, unknown
from assistant.trace.inputs import head, kind_of
from assistant.trace.reading import Results, each, names_of, needs_of, place, window
from assistant.trace.words import rank_name
from knowledge.errors import InputError, UsageError, nearest_hint
from knowledge.language import Text
from knowledge.text import clean, excerpt
from probes.trace.model import plain
from probes.trace.reading.reader import Trace

if TYPE_CHECKING:
    from probes.trace.trees.calltree import CallTree, Time

_SUFFIXES = {".svg": "svg", ".folded": "folded", ".json": "speedscope"}
_FRAMES = 2000  # of JSON
_NARROW, _BAR = 72, 21
# " 60.0%    392 ms ████████████         thread 1": a line of probes.trace.trees.flame.text
_WITH_BAR = re.compile(r"(?P<head>[ \d.]{4,6}% +[\d.,]{1,40}(?: [mnu]?s)? )(?P<bar>[█ ]{20} )(?P<name>.*)", re.DOTALL)


_OF = {
    "gpu": Text("GPU time by call stack", "按调用栈的 GPU 时间"),
    "cpu": Text("host time by call stack", "按调用栈的主机时间"),
}
_SAMPLES = Text("samples by call stack", "按调用栈的样本数")


class Stacks(NamedTuple):
    """The call tree of one trace or profile."""

    rank: int | None
    file: str
    tree: CallTree
    notes: tuple[Text, ...]
    again: str = ""  # the command that draws it; empty: of `trace flame`


def run(args: argparse.Namespace) -> int:
    """Read, grow the tree, draw or export it."""
    return shown(args, _read(args))


def shown(args: argparse.Namespace, results: Results[Stacks]) -> int:
    """Draw or export trees, as ``--export``, ``--output``, ``--time`` and ``--min-share`` ask."""
    empty = not any(_whole(s.tree, _time(args, s)) for s in results.found)
    code = Exit.UNDECIDED if empty else Exit.OK
    export = _export(args)
    if export != "text":
        return _exported(args, results, export, code)
    if args.output:
        raise UsageError(
            f"{args.output}: a graph as text goes to stdout",
            hint="--export svg|folded|speedscope for a file, or > FILE",
        )
    lang = args.settings.output.lang
    data = {"ranks": [_plain(args, s, lang) for s in results.found]}
    return answer(args, results, data, lambda: [p for s in results.found for p in _parts(args, s)], code)


def _read(args: argparse.Namespace) -> Results[Stacks]:
    """Trees of traces; profiles of py-spy and speedscope are recognised by content."""
    from probes.trace.trees import stacks

    kinds = {name: kind_of(head(place(args, name))) for name in names_of(args)}
    if all(kind in ("folded", "speedscope") for kind in kinds.values()):
        return Results([_imported(place(args, name), name, kind) for name, kind in kinds.items()])
    return each(args, needs_of(args, stacks.NEEDS), partial(_one, args))


def _one(args: argparse.Namespace, trace: Trace) -> Stacks:
    from probes.trace.trees import stacks

    tree = _of_thread(stacks.tree(trace, window(args, trace)), args.thread)
    return Stacks(trace.rank, trace.path, tree, tuple(dict.fromkeys((*trace.notes, *tree.notes))))


def _imported(here: str, name: str, kind: str) -> Stacks:
    from probes.trace.trees.folded import from_folded
    from probes.trace.trees.speedscope import from_speedscope

    try:
        data = Path(here).read_bytes()
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}") from error
    if data[:2] == b"\x1f\x8b":
        import gzip

        data = gzip.decompress(data)
    title = Path(name).name
    tree = (
        from_speedscope(data, title)
        if kind == "speedscope"
        else from_folded(data.decode("utf-8", "replace").splitlines(), title)
    )
    return Stacks(None, name, tree, tuple(tree.notes))


def _of_thread(tree: CallTree, name: str) -> CallTree:
    """Only the thread of that name. UsageError names those that there are."""
    if not name:
        return tree
    import numpy as np

    tops = np.flatnonzero(tree.parent < 0).tolist()
    chosen = {t for t in tops if name.lower() in tree.name(t).lower()}
    if not chosen:
        known = [excerpt(tree.name(t), 60) for t in tops]
        raise UsageError(
            f"no thread is called {name!r}", hint=nearest_hint(name, known) or f"threads: {', '.join(known[:8])}"
        )
    keep = np.zeros(len(tree), np.bool_)
    keep[list(chosen)] = True
    for nodes in tree.levels[1:]:
        keep[nodes] = keep[tree.parent[nodes]]
    return tree.taken(keep)


def _time(args: argparse.Namespace, s: Stacks) -> Time:
    """Device or host time; a profile of samples has only the latter."""
    imported = s.tree.unit != "nanoseconds" or not bool(s.tree.gpu_ns.any())
    return "cpu" if args.time == "cpu" or (imported and s.tree.unit != "nanoseconds") else "gpu"


def _whole(tree: CallTree, time: Time) -> int:
    return int(tree.own(time).sum())


# --- exports -------------------------------------------------------------------------------


def _export(args: argparse.Namespace) -> str:
    """What is asked for, else what the file's name says."""
    named = next((shape for suffix, shape in _SUFFIXES.items() if args.output.endswith(suffix)), "text")
    return str(args.export) if args.export != "text" else named


def _exported(args: argparse.Namespace, results: Results[Stacks], export: str, code: int) -> int:
    if len(results.found) != 1:
        raise UsageError(
            f"--export {export} is of one trace, and {len(results.found)} were given", hint="name one file, or --rank N"
        )
    s = results.found[0]
    lang = args.settings.output.lang
    text = "".join(_EXPORTS[export](s, _time(args, s), lang))
    if not args.output:
        write(text)
    else:
        save(args.output, text)
        say(f"gpudiag: {Text('written to', '已写入').in_(lang)} {args.output}", args.quiet)
    for note in (n.in_(lang) for n in s.notes):
        say(f"gpudiag: {clean(note)}", args.quiet)
    return results.code(code)


def save(path: str, text: str) -> None:
    """`text` into the file at `path`, whole or not at all. InputError when that is not possible."""
    from knowledge.whole import replace_file

    target, data = Path(path), text.encode("utf-8", "replace")
    try:
        if target.exists() and not target.is_file():  # a pipe, a device: nothing takes its place
            target.write_bytes(data)
            return
        replace_file(target, data)
        mask = os.umask(0)
        os.umask(mask)
        target.chmod(0o666 & ~mask)  # a page that is made to be passed on
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror or error}", hint="-o names a file in a folder that exists"
        ) from error


def _svg(s: Stacks, time: Time, lang: str) -> Iterator[str]:
    from probes.trace.trees.svg import svg

    found = svg(s.tree, time, title=rank_name(s.rank, s.file), lang=lang)
    yield from (found,) if isinstance(found, str) else found


def _folded(s: Stacks, time: Time, lang: str) -> Iterator[str]:
    del lang
    from probes.trace.trees.folded import folded

    return (f"{line}\n" for line in folded(s.tree, time))


def _speedscope(s: Stacks, time: Time, lang: str) -> Iterator[str]:
    del time, lang  # the file holds both times
    from probes.trace.trees.speedscope import speedscope

    yield json.dumps(speedscope(s.tree, rank_name(s.rank, s.file)), ensure_ascii=True) + "\n"


_EXPORTS: dict[str, Callable[[Stacks, Time, str], Iterator[str]]] = {
    "svg": _svg,
    "folded": _folded,
    "speedscope": _speedscope,
}


# --- text and JSON -------------------------------------------------------------------------


def _plain(args: argparse.Namespace, s: Stacks, lang: str) -> dict[str, Any]:
    """The widest frames, each with its callers."""
    import numpy as np

    from probes.trace.trees.calltree import Kind

    tree, time = s.tree, _time(args, s)
    totals, own, whole = tree.total(time), tree.own(time), _whole(tree, time)
    wide = np.flatnonzero(totals >= max(1, whole * args.min_share))
    wide = np.sort(wide[np.argsort(-totals[wide], kind="stable")][:_FRAMES])
    place = {n: i for i, n in enumerate(wide.tolist())}  # callers are at least as wide as what they call
    frames = [
        {"path": [excerpt(frame, 300) for frame in tree.path(n)], "parent": place.get(int(tree.parent[n])), "kind": Kind(int(tree.kind[n])).name.lower(), "total": int(totals[n]),
         "own": int(own[n]), "calls": int(tree.count[n]), "share": int(totals[n]) / whole}
        for n in wide.tolist()
    ] if whole else []  # fmt: skip
    return {"rank": s.rank, "file": s.file, "time": time, "unit": tree.unit, "total": whole, "min_share": args.min_share,
            "frames": frames, "notes": plain(s.notes, lang)}  # fmt: skip


def _parts(args: argparse.Namespace, s: Stacks) -> list[Part]:
    lang, time = args.settings.output.lang, _time(args, s)
    if not _whole(s.tree, time):
        return [unknown(_no_time(s, time), lang)]
    of = (_SAMPLES if s.tree.unit != "nanoseconds" else _OF[time]).in_(lang)
    title = Heading(rank_name(s.rank, s.file) + aside(of, lang))
    again = s.again or f"gpudiag trace flame {quoted(s.file)}"
    return [
        title,
        Plot(partial(_draw, args, s, lang)),
        *notes(s.notes, lang),
        *commands([f"{again} --export svg -o flame.svg"], lang),
    ]


def _no_time(s: Stacks, time: Time) -> Text:
    """Why there is no graph, and what shows one."""
    if time == "gpu" and _whole(s.tree, "cpu"):
        return Text(
            f"{s.file} holds no GPU time; --time cpu shows the host's.",
            f"{s.file} 没有 GPU 时间；--time cpu 可显示主机时间。",
        )
    return Text(
        f"{s.file} holds no call stacks: record with ProfilerActivity.CPU.",
        f"{s.file} 没有调用栈：请使用 ProfilerActivity.CPU 录制。",
    )


def _draw(args: argparse.Namespace, s: Stacks, lang: str, columns: int, fine: bool) -> list[str]:
    from probes.trace.trees.flame import text

    narrow = columns < _NARROW  # there the names need the room of the bars
    lines = []
    for line in text(
        s.tree, _time(args, s), min_share=args.min_share, width=columns + _BAR if narrow else columns, lang=lang
    ):
        found = _WITH_BAR.match(line)
        if found is None:  # what is left out, in a sentence
            lines += wrap(line, columns)
            continue
        bar = "" if narrow else found["bar"] if fine else found["bar"].replace("█", "#")
        lines.append(squeezed(f"{found['head']}{bar}{found['name']}", columns))
    return lines if fine else [line.replace("…", "~") for line in lines]
