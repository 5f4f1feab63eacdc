"""The answer of a capture as a page: verdict, findings, where the time went, what was captured and at what cost."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from assistant.capture import words
from assistant.capture.looking import Seen, called
from assistant.capture.words import word
from assistant.render.cells import pad, width
from assistant.render.labels import aside, colon, headline, label, listed, titled
from assistant.render.sheet import Code, Fields, Heading, Items, Paragraph
from assistant.render.trace_page import Bar, Bars, Column, Grid, Part, Plot, squeezed
from assistant.render.trace_plots import binned, spark
from assistant.render.trace_units import digits, duration, durations
from assistant.trace.answer import headline as first_line
from assistant.trace.answer import judged
from knowledge.language import Text
from knowledge.observation import Subject
from knowledge.text import clean, excerpt
from probes.capture import manifest
from probes.capture.manifest import mapping, rows, whole
from probes.capture.model import Target

if TYPE_CHECKING:
    from rules.engine import Finding

_TARGETS = 4  # of which each has bars of its own; of more the worst
_LEAST = 0.5  # percent: less is not worth a bar
_GPUS = 8
_NAME = 52  # columns of an activity with its function: the bar keeps its room
_SPARK = 40  # characters of a line over time
_NEXT = 3  # traces that a command names


def parts(seen: Seen, lang: str, verbose: bool = False, top: int = 8, now: int = 0) -> list[Part]:
    """Everything, for people."""
    return [
        judged(seen.about, lang, verbose, now), *elsewhere(seen, lang), *_standing(seen, lang), *_activities(seen, lang, verbose), *_gpus(seen, lang),
        *_iterations(seen, lang, top), *_captured(seen, lang, verbose), *_cost(seen, lang), *_notes(seen, lang), *_next(seen, lang),
    ]  # fmt: skip


_ELSEWHERE = 6  # findings


def elsewhere(seen: Seen, lang: str) -> list[Part]:
    """What else is to be said of the machine: one line each, for it does not explain what was asked."""
    alike: dict[object, list[Finding]] = {}
    for f in seen.elsewhere:
        alike.setdefault((f.rule.id, f.title, f.severity), []).append(f)
    lines = [
        clean(f"{label(str(g[0].severity), lang)}  {headline(titled(g), [f.subject for f in g], lang)}")
        for g in alike.values()
    ]
    more = [label("more_lines", lang).format(n=len(lines) - _ELSEWHERE)] if len(lines) > _ELSEWHERE else []
    return [Heading(word("elsewhere", lang)), Items((*lines[:_ELSEWHERE], *more))] if lines else []


# --- where the time went -------------------------------------------------------------------------


def shares(seen: Seen, subject: Subject) -> list[tuple[str, float]]:
    """What the driving thread did, as percent of the window; the most first."""
    found = ((fact, seen.of(fact, subject)) for fact in words.ACTIVITIES)
    known = [(fact, float(v)) for fact, v in found if isinstance(v, int | float) and v >= _LEAST]
    return sorted(known, key=lambda pair: -pair[1])


def _activities(seen: Seen, lang: str, verbose: bool) -> list[Part]:
    out: list[Part] = []
    found = [(t, s, shares(seen, s)) for t, _ in seen.targets for s in (seen.process(t.process.pid),)]
    told = [f for f in found if f[2]]
    shown = told if verbose or len(told) <= _TARGETS else _oddest(told)
    for target, subject, activities in shown:
        values = durations([percent * seen.seconds * 1e7 for _, percent in activities])
        bars = [
            Bar(_activity(seen, fact, subject, lang), value, percent / 100, 0, words.ACTIVITIES[fact][1])
            for (fact, percent), value in zip(activities, values, strict=True)
        ]
        out += [Heading(f"{word('where', lang)}{colon(lang)}{called(target, lang)}"), Bars(tuple(bars))]
    if len(shown) < len(told):
        more = Text(
            f"  {len(told) - len(shown)} more with --verbose",
            f"  另有 {len(told) - len(shown)} 个，使用 --verbose 查看",
        )
        out.append(Paragraph(more.in_(lang)))
    return out


def _oddest(
    told: Sequence[tuple[Target, Subject, list[tuple[str, float]]]],
) -> list[tuple[Target, Subject, list[tuple[str, float]]]]:
    """Of many ranks those that differ most from the usual one, in their order."""
    usual = {fact: median(dict(a).get(fact, 0.0) for _, _, a in told) for fact in words.ACTIVITIES}
    far = sorted(told, key=lambda f: -sum(abs(dict(f[2]).get(fact, 0.0) - v) for fact, v in usual.items()))[:_TARGETS]
    return [f for f in told if f in far]


def _activity(seen: Seen, fact: str, subject: Subject, lang: str) -> str:
    """The activity, and the function in which most of it stands."""
    where = seen.of(fact.replace(".share", ".function"), subject)
    named = words.ACTIVITIES[fact][0].in_(lang)
    return squeezed(f"{named}{colon(lang)}{excerpt(where, 160)}", _NAME) if isinstance(where, str) and where else named


def _standing(seen: Seen, lang: str) -> list[Part]:
    """Of a hang: what each process stands in."""
    lines = []
    for target, _ in seen.targets:
        subject = seen.process(target.process.pid)
        if seen.of("process.hung", subject) is not True:
            continue
        kind = str(seen.of("process.hung.kind", subject) or "unknown")
        shown = word(kind, lang) if kind in words._WORDS else clean(kind)
        lines.append((called(target, lang), shown, excerpt(str(seen.of("process.hung.function", subject) or "?"), 160)))
    if not lines:
        return []
    columns = (
        Column(word("target", lang), left=True),
        Column(word("kind", lang), left=True),
        Column(word("function", lang), left=True),
    )
    return [Heading(word("stands", lang)), Grid(columns, tuple(lines), named=False)]


# --- readings over the window --------------------------------------------------------------------


def _gpus(seen: Seen, lang: str) -> list[Part]:
    document = mapping(seen.document.get("gpus"))
    devices = mapping(document.get("devices"))
    out: list[Part] = []
    for pci, device in list(devices.items())[:_GPUS]:
        series = mapping(mapping(device).get("series"))
        lines = [line for key in words.SERIES if (line := _line(key, series.get(key), lang)) is not None]
        if lines:
            name = excerpt(str(mapping(device).get("name") or ""), 40)
            out += [Heading(f"GPU {clean(str(pci))}{aside(name, lang) if name else ''}"), Plot(partial(_draw, lines))]
    return [Heading(word("gpus", lang)), *out] if out else []


_SCALE: Mapping[str, float] = {"power_mw": 1000, "pcie_rx_kbs": 1000}


def _line(key: str, values: Any, lang: str) -> tuple[str, list[float], str, float | None] | None:
    """Name, values, mean with its unit, and the top of the scale."""
    if not isinstance(values, list):
        return None  # a status: it could not be read
    known = [float(v) / _SCALE.get(key, 1) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if not known:
        return None
    name, unit = words.SERIES[key]
    return name.in_(lang), known, f"{digits(sum(known) / len(known))} {unit}", 100.0 if unit == "%" else None


def _draw(lines: Sequence[tuple[str, list[float], str, float | None]], columns: int, fine: bool) -> list[str]:
    lead, value = max(width(n) for n, *_ in lines), max(width(m) for _, _, m, _ in lines)
    room = max(8, min(_SPARK, columns - lead - value - 6))
    return [
        f"  {pad(name, lead)}  {' ' * (value - width(mean))}{mean}  {spark(binned(values, room), top, fine)}"
        for name, values, mean, top in lines
    ]


def iteration_spans(row: Mapping[str, Any]) -> list[int]:
    """Lengths of the iterations of a target, ns."""
    ends = mapping(row.get("iterations")).get("ends")
    moments = [whole(e) for e in ends] if isinstance(ends, list) else []
    return [b - a for a, b in pairwise(moments) if b > a]


def _iterations(seen: Seen, lang: str, top: int) -> list[Part]:
    out: list[Part] = []
    for target, row in seen.targets[: _TARGETS * 2]:
        spans = iteration_spans(row)
        if not spans:
            continue
        anchor = excerpt(str(mapping(row.get("iterations")).get("anchor") or ""), 60)
        said = Text(f"{len(spans)} of {anchor or 'the loop'}, median {duration(median(spans))}, longest {duration(max(spans))}",
                    f"{anchor or '循环'} 共 {len(spans)} 次，中位数 {duration(median(spans))}，最长 {duration(max(spans))}")  # fmt: skip
        far = [(n, ns) for n, ns in enumerate(spans) if ns > 1.5 * median(spans)]
        longest = sorted(far, key=lambda pair: -pair[1])[: min(top, 3)]
        which = ", ".join(f"#{n + 1} {duration(ns)}" for n, ns in longest)
        line = [(called(target, lang), [float(s) for s in spans], duration(median(spans)), None)]
        out += [Paragraph(f"  {called(target, lang)}{colon(lang)}{said.in_(lang)}"), Plot(partial(_draw, line))]
        if len(spans) > 2 and longest:
            out.append(Paragraph("  " + Text(f"longest: {which}", f"最长：{which}").in_(lang)))
        out += _scalars(mapping(row.get("iterations")), lang)
    return [Heading(word("iterations", lang)), *out] if out else []


def _scalars(iterations: Mapping[str, Any], lang: str) -> list[Part]:
    """Loss and norm of the gradients, iteration by iteration."""
    lines: list[tuple[str, list[float], str, float | None]] = []
    for key, name in (("loss", Text("loss", "损失")), ("gradnorm", Text("gradient norm", "梯度范数"))):
        values = iterations.get(key)
        known = (
            [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool) and v - v == 0]
            if isinstance(values, list)
            else []
        )
        if known:
            lines.append((name.in_(lang), known, digits(known[-1]), None))
    return [Plot(partial(_draw, lines))] if lines else []


# --- the capture itself --------------------------------------------------------------------------


def _captured(seen: Seen, lang: str, verbose: bool) -> list[Part]:
    """What was got, by which way, and what was not got and why."""
    lines: list[tuple[str, str, str, str]] = []
    said: dict[str, tuple[dict[str, None], dict[str, None]]] = {}  # reason -> parts, targets
    for target, row in seen.targets:
        for part in rows(row.get("parts")):
            item, name = clean(str(part.get("item"))), called(target, lang)
            lines.append(
                (item, clean(str(part.get("rung") or "-")), words.outcome(clean(str(part.get("outcome"))), lang), name)
            )
            told = clean("; ".join(t for k in ("why", "remedy") if (t := manifest.text(part.get(k)).in_(lang))))
            if told:
                about = said.setdefault(told, ({}, {}))
                about[0][item] = about[1][name] = None
    columns = (Column(word("part", lang), left=True), Column(word("way", lang), 1, left=True), Column(word("outcome", lang), left=True),
               Column(word("target", lang), left=True))  # fmt: skip
    window = Text(f"  {duration(seen.seconds * 1e9)} from {len(seen.targets)} process{'es' if len(seen.targets) != 1 else ''}",
                  f"  {len(seen.targets)} 个进程，{duration(seen.seconds * 1e9)}")  # fmt: skip
    shown = lines if verbose or len(seen.targets) == 1 else _folded(lines, seen, lang)
    why = [
        _of_whom(seen, f"{listed(items, lang)}{colon(lang)}{told}", list(names), lang)
        for told, (items, names) in said.items()
    ]
    rest: list[Part] = [Items(tuple(why))] if why else []
    return [
        Heading(word("captured", lang)),
        Paragraph(window.in_(lang)),
        Grid(columns, tuple(shown), named=False),
        *rest,
    ]


def _few(names: Sequence[str]) -> str:
    """The first names."""
    return ", ".join(names[:4]) + (f" +{len(names) - 4}" if len(names) > 4 else "")


def _folded(lines: Sequence[tuple[str, str, str, str]], seen: Seen, lang: str) -> list[tuple[str, str, str, str]]:
    """The same of several targets once."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for item, way, got, name in lines:
        groups.setdefault((item, way, got), []).append(name)
    everyone = len(seen.targets)
    return [
        (*key, Text(f"all {everyone}", f"全部 {everyone} 个").in_(lang) if len(names) == everyone else _few(names))
        for key, names in groups.items()
    ]


def _cost(seen: Seen, lang: str) -> list[Part]:
    """What the job paid, and what stayed in it."""
    fields: list[tuple[str, str]] = []
    left: dict[str, list[str]] = {}
    worries: dict[str, list[str]] = {}
    for target, row in seen.targets:
        found, name = mapping(row.get("aftermath")), called(target, lang)
        if not found:
            continue
        fields.append((name, ("；" if lang == "zh" else "; ").join(_paid(found, lang))))
        for key, kept in (("left", left), ("worries", worries)):
            for told in rows(found.get(key)):
                kept.setdefault(clean(manifest.text(told).in_(lang)), []).append(name)
    out: list[Part] = [Heading(word("cost", lang)), Fields(tuple(fields))] if fields else []
    stays = tuple(_of_whom(seen, told, names, lang) for kept in (worries, left) for told, names in kept.items() if told)
    return [*out, Heading(word("left", lang)), Items(stays)] if stays else out


def _paid(found: Mapping[str, Any], lang: str) -> list[str]:
    """What the counted iterations tell, and whether all is as it was."""
    before, after, longest = (found.get(k) for k in ("iteration_before_ns", "iteration_after_ns", "longest_ns"))
    said = []
    if isinstance(longest, int):
        said.append(Text(f"longest iteration {duration(longest)}", f"最长迭代 {duration(longest)}"))
    if isinstance(before, int) and isinstance(after, int) and before > 0:
        said.append(Text(f"an iteration took {duration(before)} before and {duration(after)} after",
                         f"采集前每次迭代 {duration(before)}，之后 {duration(after)}"))  # fmt: skip
    if mapping(found.get("after")).get("alive") is False:
        said.append(Text("it ended", "已退出"))
    elif not found.get("worries"):
        stands = mapping(found.get("after")).get("state") in ("T", "t")
        traced = bool(mapping(found.get("after")).get("tracer"))
        state = Text("stopped" if stands else "running", "已停止" if stands else "运行中")
        by = Text("traced as before" if traced else "untraced", "仍被跟踪" if traced else "未被跟踪")
        said.append(Text(f"left as it was found: {state.en}, {by.en}", f"已恢复原状：{state.zh}、{by.zh}"))
    return [t.in_(lang) for t in said]


def _of_whom(seen: Seen, told: str, names: Sequence[str], lang: str) -> str:
    """A sentence, with those of whom it is said where it is not so of all."""
    return told if len(names) == len(seen.targets) else f"{told}{aside(_few(names), lang)}"


def _notes(seen: Seen, lang: str) -> list[Part]:
    """What happened on the way, and what of the inputs could not be used."""
    said = [manifest.text(n).in_(lang) for n in rows(seen.document.get("notes"))]
    said += [
        f"{called(t, lang)}{colon(lang)}{manifest.text(n).in_(lang)}"
        for t, row in seen.targets
        for n in rows(row.get("notes"))
    ]
    said += [clean(n) for n in seen.diagnosis.notes]
    shown = tuple(map(clean, dict.fromkeys(t for t in said if t)))
    return [Heading(word("notes", lang)), Items(shown)] if shown else []


def commands(seen: Seen) -> list[str]:
    """What to run next."""
    out = []
    place = shlex.quote(clean(str(seen.folder)))
    traces = [shlex.quote(clean(str(p))) for p in seen.traces]
    if traces and _has_kernels(seen):
        out.append(f"gpudiag trace summary {' '.join(traces) if len(traces) <= _NEXT else place}")
    elif traces:
        out += [f"gpudiag trace ops {traces[0]}", f"gpudiag trace flame --time cpu {traces[0]}"]
    if mapping(seen.document.get("stacks")):
        out.append(f"gpudiag profile show {_named(seen)} --format html > profile.html")
    return out


def _named(seen: Seen) -> str:
    """What `profile show` takes: the id of a record at home, the folder of any other."""
    from assistant.capture.records import home

    return clean(seen.id) if seen.folder.parent == home() else shlex.quote(clean(str(seen.folder)))


def _has_kernels(seen: Seen) -> bool:
    """Whether what ran on the GPU was captured."""
    parts = [p for _, row in seen.targets for p in rows(row.get("parts"))]
    return any(p.get("item") == "kernels" and p.get("outcome") in ("ok", "partial") for p in parts)


def _next(seen: Seen, lang: str) -> list[Part]:
    lines = [*commands(seen), *left_out(seen)]
    return [Heading(word("next", lang)), Code(tuple(lines))] if lines else []


def left_out(seen: Seen) -> list[str]:
    """The command that gets what consent was not given to."""
    declined = any(part.get("outcome") == "declined" for _, row in seen.targets for part in rows(row.get("parts")))
    line = seen.document.get("line")
    return [f"{clean(line)} --yes"] if declined and isinstance(line, str) and line else []


# --- machines ------------------------------------------------------------------------------------


def data(seen: Seen, lang: str) -> dict[str, Any]:
    """``gpudiag/profile/1`` without its schema."""
    from assistant.render.json_ import plain
    from assistant.sources import tells

    about = seen.about
    return {
        "id": seen.id, "folder": str(seen.folder), "host": seen.document.get("host"), "as_of": seen.document.get("as_of"),
        "seconds": round(seen.seconds, 6), "verdict": first_line(judged(about, lang), about),
        "window": seen.document.get("window"), "items": seen.document.get("items"),
        "targets": [_target(seen, t, row, lang) for t, row in seen.targets],
        "traces": [str(p) for p in seen.traces], "size": manifest.size(seen.folder) if seen.folder.is_dir() else None,
        "notes": [manifest.text(n).in_(lang) for n in rows(seen.document.get("notes"))],
        "next": [*commands(seen), *left_out(seen)],
        "diagnosis": plain(seen.diagnosis, lang, tells),
    }  # fmt: skip


def _target(seen: Seen, target: Target, row: Mapping[str, Any], lang: str) -> dict[str, Any]:
    subject = seen.process(target.process.pid)
    spans = iteration_spans(row)
    after = mapping(row.get("aftermath"))
    return {
        "pid": target.process.pid, "rank": target.rank, "job": target.job or None, "name": called(target, lang), "why": target.why,
        "gpus": list(target.gpus), "activities": {fact.removesuffix(".share"): value for fact, value in shares(seen, subject)},
        "parts": [
            {**{k: part.get(k) for k in ("item", "outcome", "rung", "file")}, "why": manifest.text(part.get("why")).in_(lang) or None,
             "remedy": manifest.text(part.get("remedy")).in_(lang) or None}
            for part in rows(row.get("parts"))
        ],
        "iterations": {"count": len(spans), "median_ns": round(median(spans)), "longest_ns": max(spans)} if spans else None,
        "clean": after.get("clean") if after else None,
        "left": [manifest.text(t).in_(lang) for t in rows(after.get("left"))],
        "worries": [manifest.text(t).in_(lang) for t in rows(after.get("worries"))],
    }  # fmt: skip
