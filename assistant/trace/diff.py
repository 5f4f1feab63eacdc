"""``gpudiag trace diff``: what explains the difference between two traces, two iterations or two ranks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from assistant.exits import Exit
from assistant.render.labels import label
from assistant.render.sheet import Heading, Paragraph
from assistant.render.trace_page import Column, Grid, Head, Part
from assistant.render.trace_units import duration, number, ratio, share, signed
from assistant.trace.answer import answer, commands, no_gpu, notes, quoted, unknown
from assistant.trace.reading import Results, load, names_of, needs_of, window
from assistant.trace.words import rank_name, short, word
from knowledge.errors import UsageError
from knowledge.language import Text
from knowledge.text import clean, excerpt
from probes.trace.columns import Wanted, both
from probes.trace.model import Diff, Difference, Window, plain
from probes.trace.reading.reader import Trace

if TYPE_CHECKING:
    from assistant.trace.options import Pair

_SAME = 0.01  # of the longer one: less is no difference worth a sentence
_HOST = 5  # lines of host time: they explain where the device was idle


class _Side(NamedTuple):
    """One of the two."""

    trace: Trace
    window: Window | None
    name: str


def run(args: argparse.Namespace) -> int:
    """Read both, align, print."""
    from probes.trace.steps import iterations
    from probes.trace.trees import diff

    needs = needs_of(args, diff.NEEDS)
    if args.iterations:
        needs = both(needs, iterations.NEEDS)
    a, b = _sides(args, needs)
    lang = args.settings.output.lang
    silent = next((s for s in (a, b) if s.window is None), None)
    results: Results[Diff] = Results()
    if silent is not None:
        why = no_gpu(silent.trace)
        return answer(args, results, {"why": why.in_(lang)}, lambda: [unknown(why, lang)], Exit.UNDECIDED)
    found = diff.diff(a.trace, b.trace, a.window, b.window)
    data: dict[str, Any] = plain(found, lang) | {
        "a": a.name,
        "b": b.name,
        "a_window": plain(a.window),
        "b_window": plain(b.window),
    }
    said = [*a.trace.notes, *b.trace.notes, *found.notes]
    return answer(args, results, data, lambda: _parts(args, found, a, b, said), Exit.OK)


# --- what is compared ----------------------------------------------------------------------


def _sides(args: argparse.Namespace, needs: Wanted) -> tuple[_Side, _Side]:
    """The two that are asked for. UsageError when the files do not give two."""
    given = names_of(args, repeated=True)
    if args.iterations:
        return _two_iterations(args, given, needs, args.iterations)
    if args.ranks:
        return _two_ranks(args, given, needs, args.ranks)
    if len(given) != 2:
        raise UsageError(f"two traces are compared, and {len(given)} {'was' if len(given) == 1 else 'were'} given",
                         hint="of one trace two iterations: --iterations A:B; of many traces two ranks: --ranks A:B")  # fmt: skip
    traces = [load(args, name, needs) for name in given]
    names = [rank_name(t.rank, t.path) for t in traces]
    if names[0] == names[1]:
        names = [excerpt(t.path, 200) for t in traces]
    a, b = (_Side(t, window(args, t), name) for t, name in zip(traces, names, strict=True))
    return a, b


def _two_iterations(args: argparse.Namespace, names: Sequence[str], needs: Wanted, pair: Pair) -> tuple[_Side, _Side]:
    from probes.trace.steps.iterations import iterations

    if len(names) != 1:
        raise UsageError(
            f"--iterations compares two iterations of one trace, and {len(names)} were given", hint="give one file"
        )
    trace = load(args, names[0], needs)
    found = {i.number: i for i in reversed(iterations(trace, args.marker).items)}
    for wish in pair:
        if wish not in found:
            known = f"{min(found)} to {max(found)}" if found else "none"
            raise UsageError(
                f"{trace.path} holds no iteration {wish} (iterations: {known})",
                hint="gpudiag trace iterations lists them",
            )
    one, two = found[pair.a], found[pair.b]
    windows = (
        [Window("iterations", i.start_ns, i.end_ns, 1, i.name) for i in (one, two)] if len(trace.gpu) else [None, None]
    )
    return _Side(trace, windows[0], f"iteration {one.number}"), _Side(trace, windows[1], f"iteration {two.number}")


def _two_ranks(args: argparse.Namespace, names: Sequence[str], needs: Wanted, pair: Pair) -> tuple[_Side, _Side]:
    """The traces of two ranks among many: those whose name says another rank are not read."""
    from assistant.trace.reading import of_rank

    found = []
    for wish in pair:
        for name in of_rank(wish, names):
            trace = load(args, name, needs)
            if trace.rank == wish:
                found.append(_Side(trace, window(args, trace), f"rank {wish}"))
                break
        else:
            raise UsageError(
                f"none of the {len(names)} traces is of rank {wish}",
                hint="gpudiag trace summary names the ranks that there are",
            )
    return found[0], found[1]


# --- text ----------------------------------------------------------------------------------


def _parts(args: argparse.Namespace, d: Diff, a: _Side, b: _Side, said: Sequence[Text]) -> list[Part]:
    lang = args.settings.output.lang
    out: list[Part] = [
        _head(d, a.name, b.name, lang),
        Heading(f"{a.name} -> {b.name}"),
        _table(*_used(d, lang), lang, total=d),
    ]
    levels = ((Text("By kernel", "按 kernel"), d.kernels, args.top), (Text("By call path", "按调用路径"), d.tree, args.top),
              (Text("Host time by call path", "主机时间按调用路径"), d.host, min(_HOST, args.top)))  # fmt: skip
    for title, rows, most in levels:
        told = [r for r in rows if r.a_ns != r.b_ns or r.a_count != r.b_count]
        if told:
            labels = [_path(r.path, lang) for r in told[:most]]
            out += [Heading(title.in_(lang)), _table(told[:most], labels, lang, path=rows is not d.kernels)]
            out += (
                [Paragraph("  " + label("more_lines", lang).format(n=len(told) - most) + " (--top)")]
                if len(told) > most
                else []
            )
    more = [] if a.trace is b.trace else [f"gpudiag trace kernels --by shape {quoted(b.trace.path)}"]
    return [*out, *notes(said, lang), *commands(more, lang)]


def _used(d: Diff, lang: str) -> tuple[list[Difference], list[str]]:
    """The parts that differ, and their names."""
    both = [(p, n) for p, n in zip(d.parts, _part_names(d, lang), strict=True) if p.a_ns != p.b_ns]
    return [p for p, _ in both], [n for _, n in both]


def _part_names(d: Diff, lang: str) -> list[str]:
    from probes.trace.trees.reasons import PARTS

    return [PARTS[p.path].in_(lang) if p.path in PARTS else excerpt(p.path, 60) for p in d.parts]


def _path(path: str, lang: str) -> str:
    from probes.trace.trees.reasons import PARTS

    return PARTS[path].in_(lang) if path in PARTS else " > ".join(short(frame) for frame in path.split(" > "))


def _head(d: Diff, a: str, b: str, lang: str) -> Head:
    """How much longer, and which part of the time explains most of it: a comparison, and no verdict."""
    gap = d.b_ns - d.a_ns
    of = ratio(abs(gap), d.a_ns)
    if not d.parts or of is None or abs(gap) <= _SAME * max(d.a_ns, d.b_ns):
        text = Text(
            f"{b} takes as long as {a}: {duration(d.b_ns)} and {duration(d.a_ns)}.",
            f"{b} 与 {a} 用时相同：{duration(d.b_ns)} 与 {duration(d.a_ns)}。",
        )
        return Head("info", word("same", lang), clean(text.in_(lang)))
    part = max(d.parts, key=lambda p: (p.b_ns - p.a_ns) * (1 if gap > 0 else -1))
    name = _part_names(d, lang)[d.parts.index(part)]
    culprit = _culprit(d, part, lang)
    slower = gap > 0
    b = b if lang == "zh" else b[:1].upper() + b[1:]
    why_en, why_zh = f"{share(part.share)} of that is {name}", f"其中 {share(part.share)} 是{name}"
    if part.share is not None and abs(part.share) > 1.0005:  # other parts make up for some of it
        alone = signed(part.b_ns - part.a_ns)
        why_en, why_zh = (
            f"{name} alone is {alone}, which other parts make up for",
            f"仅{name}一项就是 {alone}，被其他部分抵消",
        )
    each_en, each_zh = (" an iteration", "每个迭代") if d.per_iteration else ("", "")
    text = Text(
        f"{b} takes {duration(d.b_ns)}{each_en}, {a} {duration(d.a_ns)} ({signed(gap)}, {share(of)} {'more' if slower else 'less'}): {why_en}.{culprit}",
        f"{b} {each_zh}用时 {duration(d.b_ns)}，{a} 为 {duration(d.a_ns)}（{signed(gap)}，{'多' if slower else '少'} {share(of)}）：{why_zh}。{culprit}")  # fmt: skip
    return Head("info", word("slower" if slower else "faster", lang), clean(text.in_(lang)))


def _culprit(d: Diff, part: Difference, lang: str) -> str:
    """The kernel of that part whose time changed most, in the same direction."""
    from probes.trace.names.classify import is_communication

    def in_part(name: str) -> bool:
        kind = (
            "exposed copies"
            if name.startswith("Mem")
            else "exposed communication"
            if is_communication(name)
            else "compute"
        )
        return kind == part.path

    gap = part.b_ns - part.a_ns
    rows = [k for k in d.kernels if in_part(k.path) and (k.b_ns - k.a_ns) * gap > 0]
    if not rows:
        return ""
    k = max(rows, key=lambda k: abs(k.b_ns - k.a_ns))
    return Text(
        f" Most by {short(k.path)} ({signed(k.b_ns - k.a_ns)}).",
        f"变化最大的是 {short(k.path)}（{signed(k.b_ns - k.a_ns)}）。",
    ).in_(lang)


def _table(
    rows: Sequence[Difference], names: Sequence[str], lang: str, total: Diff | None = None, path: bool = False
) -> Grid:
    """One line a difference; with `total` their sum below them. `path`: the end of the name tells more than its beginning."""
    from probes.trace.trees.reasons import WHY, Why

    titles = ((Text("difference", "差值"), 0), (Text("of the gap", "占差距"), 0), (Text("before", "之前"), 2), (Text("after", "之后"), 3),
              (Text("calls", "调用"), 4))  # fmt: skip
    shown = []
    for r, name in zip(rows, names, strict=True):
        calls = (
            ""
            if not r.a_count and not r.b_count
            else number(r.a_count)
            if r.a_count == r.b_count
            else f"{number(r.a_count)} > {number(r.b_count)}"
        )
        why = WHY[Why(r.why)].in_(lang) if r.why and r.why in set(Why) else ""
        shown.append(
            (
                signed(r.b_ns - r.a_ns),
                share(r.share).replace("-", "−", 1),
                duration(r.a_ns),
                duration(r.b_ns),
                calls,
                why,
                name,
            )
        )
    if total is not None:
        together = Text("together", "合计").in_(lang)
        shown.append(
            (signed(total.b_ns - total.a_ns), "", duration(total.a_ns), duration(total.b_ns), "", "", together)
        )
    columns = (
        *(Column(t.in_(lang), drop) for t, drop in titles),
        Column(Text("why", "原因").in_(lang), 1, left=True),
        Column(word("name", lang)),
    )
    return Grid(columns, tuple(shown), tail=path)
