"""``gpudiag history profiles | flame | diff | heat``: what ``watch --profile NAME`` sampled, over any window."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from assistant.exits import Exit
from assistant.output import write
from assistant.profiles import growth, windows
from assistant.profiles.heat import Heat, cells, heat
from assistant.render.sheet import Heading, Paragraph
from assistant.render.times import iso
from assistant.render.trace_page import Column, Grid, Head, Page, Part, Plot, show
from assistant.render.trace_units import share
from assistant.store.profiles import Ask, S, Slice, Stack, Target, added, slices, targets
from assistant.trace.answer import commands, quoted
from knowledge.errors import UsageError, nearest_hint
from knowledge.language import Text
from knowledge.text import excerpt

if TYPE_CHECKING:
    from probes.trace.trees.calltree import CallTree

ROWS = 15
_COLUMNS = 60  # of a heat map for machines and pages; a terminal says how many it has
_LEAST_DRAWN = 20


def run(ask: Ask, args: argparse.Namespace, now: int) -> int:
    """The page that the action names, from the history that `ask` reads. UsageError for a target that was never sampled."""
    found = targets(ask, args.host)
    if args.action == "profiles":
        return _list(found, args)
    page = {"flame": _flame, "diff": _diff, "heat": _heat}[args.action]
    return page(ask, _chosen(found, args.name), args, now)


def _chosen(found: list[Target], name: str) -> Target:
    same = [t for t in found if t.name == name]
    if len(same) == 1:
        return same[0]
    if same:
        raise UsageError(f"{name} was sampled on {', '.join(t.host for t in same)}", hint="--host names one of them")
    known = [t.name for t in found]
    nothing = f"nothing was sampled yet: gpudiag watch --profile {quoted(name)}"
    hint = nearest_hint(name, known) or (f"sampled were: {', '.join(known[:8])}" if known else nothing)
    raise UsageError(f"no stacks of {name!r} are in the history", hint=hint)


def _list(found: list[Target], args: argparse.Namespace) -> int:
    lang = args.settings.output.lang

    def parts() -> list[Part]:
        if not found:
            said = Text(
                "No stacks are in the history yet: gpudiag watch --profile NAME samples them.",
                "历史中还没有调用栈：gpudiag watch --profile NAME 会采样。",
            )
            return [Paragraph(said.in_(lang))]
        titles = (
            Text("node", "节点"),
            Text("processes", "进程数"),
            Text("first", "最早"),
            Text("last", "最新"),
            Text("name", "名称"),
        )
        columns = tuple(Column(t.in_(lang), left=i != 1) for i, t in enumerate(titles))
        rows = tuple((t.host, str(t.processes), _when(t.first_at), _when(t.last_at), t.name) for t in found)
        return [Heading(Text("Sampled stacks", "已采样的调用栈").in_(lang)), Grid(columns, rows, named=False)]

    data = {"targets": [{**t._asdict(), "first_at": _when(t.first_at) or None, "last_at": _when(t.last_at) or None} for t in found]}  # fmt: skip
    write(show(Page("gpudiag/profile-targets/1", data, parts), args.settings.output))
    return Exit.OK


def _when(at: int | None) -> str:
    """A time to the second; samples know no better."""
    return (iso(at // S * S) or "") if at is not None else ""


# --- flame graph --------------------------------------------------------------------------


def _flame(ask: Ask, target: Target, args: argparse.Namespace, now: int) -> int:
    """Drawn as `trace flame` draws."""
    from assistant.trace import flame
    from assistant.trace.reading import Results

    since, until = windows.window(args.window, now)
    stacks = added(s.stacks for s in slices(ask, target, since, until))
    tree = _tree(stacks, target.name)
    note = Text(
        f"{sum(stacks.values())} samples between {_when(since)} and {_when(until)}; a width is a number of samples",
        f"{_when(since)} 至 {_when(until)} 共 {sum(stacks.values())} 个样本；宽度表示样本数",
    )
    again = f"gpudiag history flame {quoted(target.name)} --window {args.window}"
    args.time = "cpu"
    return flame.shown(args, Results([flame.Stacks(None, target.name, tree, (note,), again)]))


def _tree(stacks: Mapping[Stack, int], title: str) -> CallTree:
    from probes.trace.trees.folded import Builder

    builder = Builder(title, "samples")
    for stack, count in sorted(stacks.items()):
        builder.add(stack, count)
    return builder.tree()


# --- difference ---------------------------------------------------------------------------


def _diff(ask: Ask, target: Target, args: argparse.Namespace, now: int) -> int:
    after = windows.window(args.after, now)
    before = windows.window(args.before, now) if args.before else windows.ahead(*after)
    sums = [added(s.stacks for s in slices(ask, target, *w)) for w in (before, after)]
    found = growth.compared(*sums)
    if args.export == "svg" or args.output.endswith(".svg"):
        return _drawn(target, sums, args)
    lang = args.settings.output.lang
    data = {
        "name": target.name, "host": target.host, "before": _window(before, found.before), "after": _window(after, found.after),
        "culprit": found.culprit.name if found.culprit else None, "enough": found.enough,
        "functions": [{**c._asdict(), "grown": c.grown} for c in found.changes[:200]],
    }  # fmt: skip
    write(show(Page("gpudiag/profile-diff/1", data, partial(_diff_parts, target, found, before, after, args, lang)), args.settings.output))  # fmt: skip
    return Exit.OK if found.enough else Exit.UNDECIDED


def _window(window: tuple[int, int], samples: int) -> dict[str, Any]:
    return {"from": iso(window[0]), "to": iso(window[1]), "samples": samples}


def _diff_parts(
    target: Target, found: growth.Growth, before: tuple[int, int], after: tuple[int, int], args: argparse.Namespace, lang: str
) -> list[Part]:  # fmt: skip
    words = Text(
        f"{found.before} samples from {_when(before[0])} to {_when(before[1])} against {found.after} from {_when(after[0])} to {_when(after[1])}",
        f"{_when(before[0])} 至 {_when(before[1])} 的 {found.before} 个样本，对比 {_when(after[0])} 至 {_when(after[1])} 的 {found.after} 个",
    )
    titles = (
        Text("before", "之前"),
        Text("after", "之后"),
        Text("change", "变化"),
        Text("own", "自身"),
        Text("function", "函数"),
    )
    shown = [c for c in found.changes if abs(c.grown) >= 0.001][:ROWS]
    rows = tuple(
        (share(c.before), share(c.after), f"{100 * c.grown:+.1f}", f"{100 * (c.own_after - c.own_before):+.1f}", c.name)
        for c in shown
    )
    columns = tuple(Column(t.in_(lang), drop) for t, drop in zip(titles, (1, 0, 0, 2, 0), strict=True))
    again = f"gpudiag history diff {quoted(target.name)} --after {args.after}"
    again += f" --before {args.before}" if args.before else ""
    return [
        _diff_head(target, found, lang),
        Paragraph(words.in_(lang)),
        *([Grid(columns, rows, tail=True)] if rows else []),
        *commands([f"{again} --export svg -o diff.svg"], lang),
    ]


def _diff_head(target: Target, found: growth.Growth, lang: str) -> Head:
    c = found.culprit
    if not found.enough:
        said = Text(
            f"{target.name}: too few samples to tell ({found.before} before, {found.after} after; {growth.LEAST} are needed)",
            f"{target.name}：样本太少，无法判断（之前 {found.before}，之后 {found.after}；至少需要 {growth.LEAST}）",
        )
        return Head("unknown", Text("UNKNOWN", "未知").in_(lang), said.in_(lang))
    if c is None:
        said = Text(f"{target.name}: no function grew", f"{target.name}：没有函数明显增长")
        return Head("info", Text("SAME", "相同").in_(lang), said.in_(lang))
    said = Text(
        f"{c.name} grew: {share(c.before)} of the samples of {target.name} before, {share(c.after)} after",
        f"{c.name} 增长：占 {target.name} 样本的比例由 {share(c.before)} 变为 {share(c.after)}",
    )
    return Head("info", Text("GREW", "增长").in_(lang), said.in_(lang))


def _drawn(target: Target, sums: list[dict[Stack, int]], args: argparse.Namespace) -> int:
    """Both windows as one flame graph, coloured by what changed; the windows count alike, however long."""
    from assistant.output import say
    from assistant.trace.flame import save
    from probes.trace.trees.align import align
    from probes.trace.trees.svg import svg

    wholes = [sum(s.values()) or 1 for s in sums]
    scaled = [{k: round(n * 100_000 / whole) for k, n in s.items()} for s, whole in zip(sums, wholes, strict=True)]
    lang = args.settings.output.lang
    before, after = (_tree(s, target.name) for s in scaled)
    text = svg(align(before, after), "cpu", title=target.name, lang=lang)
    if args.output:
        save(args.output, text)
        say(f"gpudiag: {Text('written to', '已写入').in_(lang)} {args.output}", args.quiet)
    else:
        write(text)
    return Exit.OK


# --- heat map -----------------------------------------------------------------------------


def _heat(ask: Ask, target: Target, args: argparse.Namespace, now: int) -> int:
    since, until = windows.window(args.window, now)
    found = slices(ask, target, since, until)
    lang = args.settings.output.lang

    def made(columns: int) -> Heat:
        return heat(found, since, until, columns, args.limit, args.own)

    whole = made(_COLUMNS)
    data = {
        "name": target.name, "host": target.host, "from": iso(since), "to": iso(until), "own": args.own,
        "column_seconds": whole.width / S, "samples": list(whole.samples),
        "functions": [{"name": name, "shares": list(row)} for name, row in whole.rows],
    }  # fmt: skip
    write(show(Page("gpudiag/profile-heat/1", data, partial(_heat_parts, target, found, made, args, lang)), args.settings.output))  # fmt: skip
    return Exit.OK if found else Exit.UNDECIDED


def _heat_parts(target: Target, found: list[Slice], made: Any, args: argparse.Namespace, lang: str) -> list[Part]:
    if not found:
        said = Text(
            f"nothing of {target.name} was sampled in {args.window}", f"{args.window} 内没有 {target.name} 的样本"
        )
        return [Head("unknown", Text("UNKNOWN", "未知").in_(lang), said.in_(lang))]
    title = Text(
        f"{target.name}: share of the samples by function ({'own' if args.own else 'with what it calls'})",
        f"{target.name}：各函数占样本的比例（{'自身' if args.own else '含被调用者'}）",
    )
    legend = Text("blank: under 2 %; ░ up to 25 %, ▒ 50 %, ▓ 75 %, █ more; ·: not sampled",
                  "空白：低于 2 %；░ 至 25 %，▒ 50 %，▓ 75 %，█ 更多；·：未采样")  # fmt: skip
    name = quoted(target.name)
    return [
        Heading(title.in_(lang)),
        Plot(partial(_plot, made)),
        Paragraph(legend.in_(lang)),
        *commands(
            [f"gpudiag history flame {name} --window {args.window}", f"gpudiag history diff {name} --after 1h"], lang
        ),
    ]


def _plot(made: Any, columns: int, fine: bool) -> list[str]:
    """The map as wide as there is room; names at its right, cut where they are too long."""
    names = max(_LEAST_DRAWN, columns // 3)
    drawn: Heat = made(max(_LEAST_DRAWN, columns - names - 4))
    across = len(drawn.samples)
    first, last = (_clock(drawn.since + i * drawn.width) for i in (0, across))
    lines = [f"  {cells(row, fine):<{across}}  {excerpt(name, columns - across - 4)}" for name, row in drawn.rows]
    scale = f"{first}{last:>{across - len(first)}}" if across >= len(first) + len(last) + 1 else f"{first} .. {last}"
    return [*lines, f"  {scale}"]


def _clock(at: int) -> str:
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(at / S, UTC):%m-%d %H:%M}"
