"""``gpudiag history``: what earlier checks saw."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from assistant.arguments import rows
from assistant.output import say, write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from assistant.config import History
    from assistant.render.sheet import Part, Sheet
    from assistant.store.location import Location
    from assistant.store.read import Line, PastFinding, Reader, Run
    from assistant.store.worked import Worked
    from knowledge.language import Text

NAME = "history"
HELP = "earlier checks: verdicts, findings, and how values went"
ROWS = 20  # of samples and runs, without --limit
PROFILES = frozenset({"profiles", "flame", "diff", "heat"})  # actions on sampled stacks


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``history [list] | show [RUN] | fact NAME | work | profiles | flame | diff | heat NAME | prune``."""
    parser.set_defaults(host="", limit=ROWS, action="list")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions (default: list)")
    runs = actions.add_parser("list", help="the newest checks, with verdict and findings")
    one = actions.add_parser("show", help="one check: verdict, findings, probes")
    one.add_argument("run", nargs="?", type=int, metavar="RUN", help="number of the check (default: the newest)")
    fact = actions.add_parser("fact", help="how a value went: samples, rate, trend")
    fact.add_argument("name", metavar="NAME", help="name of the fact, such as gpu.temperature.core")
    fact.add_argument("--subject", default="", metavar="S", help="only about this, such as a GPU's address")
    fact.add_argument("--since", default="7d", metavar="TIME", help="how far back, such as 2h or 7d (default: 7d)")
    work = actions.add_parser("work", help="what each GPU did: busy beside working, and what most looks show")
    work.add_argument("--since", default="1d", metavar="TIME", help="how far back, such as 2h or 7d (default: 1d)")
    actions.add_parser("prune", help="remove what is older than history_days, and give the space back")
    stacks = _add_profiles(actions)
    for child in (runs, fact, stacks["heat"]):
        child.add_argument(
            "--limit", type=rows, default=ROWS, metavar="N", help=f"at most so many rows (default: {ROWS})"
        )
    for child in (runs, one, fact, work, *stacks.values()):
        child.add_argument("--host", default="", metavar="NAME", help="only this node")


def _add_profiles(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> dict[str, argparse.ArgumentParser]:
    """``profiles | flame NAME | diff NAME | heat NAME``: what ``watch --profile`` sampled."""
    made = {
        "profiles": actions.add_parser("profiles", help="what watch --profile sampled, and since when"),
        "flame": actions.add_parser("flame", help="sampled stacks of a window as a flame graph"),
        "diff": actions.add_parser("diff", help="two windows of sampled stacks: which function grew"),
        "heat": actions.add_parser("heat", help="functions over time: how much of each stretch they took"),
    }
    for name in ("flame", "diff", "heat"):
        made[name].add_argument("name", metavar="NAME", help="the name that was given to watch --profile")
    for name, usual in (("flame", "1h"), ("heat", "24h")):
        made[name].add_argument(
            "--window", default=usual, metavar="FROM..TO",
            help=f"times: 2h (ago), 14:30, 2026-11-20T14:30, now; FROM alone is until now (default: {usual})",
        )  # fmt: skip
    made["diff"].add_argument("--after", default="1h", metavar="FROM..TO", help="the window to explain (default: 1h)")
    made["diff"].add_argument(
        "--before", default="", metavar="FROM..TO", help="what it is held against (default: as long, right ahead)"
    )
    made["heat"].add_argument(
        "--own", action="store_true", help="only where a function is innermost, not in what it calls"
    )
    made["flame"].add_argument(
        "--min-share", type=float, default=0.01, metavar="SHARE", help="leave out what is less (default: 0.01)"
    )
    for name, shapes in (("flame", ("text", "svg", "folded", "speedscope")), ("diff", ("text", "svg"))):
        made[name].add_argument("--export", choices=shapes, default="text", help="shape of the graph (default: text)")
        made[name].add_argument("-o", "--output", default="", metavar="FILE", help="write the graph there")
    return made


def run(args: argparse.Namespace) -> int:
    """Show, or prune."""
    from assistant.render.sheet import show
    from assistant.store.location import StoreError, parse
    from assistant.store.read import open_reader
    from knowledge.errors import UsageError

    args.action = args.action or "list"
    settings: History = args.settings.history
    lang = args.settings.output.lang
    location = parse(settings.url)
    if location is None:
        raise UsageError("the history is off (history_url)", hint="gpudiag config show says where that is set")
    try:
        if args.action == "prune":
            return _prune(location, settings.days, args)
        reader = open_reader(location)
        if args.action in PROFILES:
            return _profiles(reader, args)
        if reader is None:
            page = _empty(location, lang)
        else:
            with reader:
                page = _page(reader, location, args, lang)
    except StoreError as error:
        raise UsageError(error.said.in_(lang)) from error
    write(show(page, args.settings.output))
    return 0


def _profiles(reader: Reader | None, args: argparse.Namespace) -> int:
    """Of no history at all, as of one in which nothing was sampled."""
    from time import time_ns

    from assistant.profiles import pages

    if reader is None:
        return pages.run(lambda *_: [], args, time_ns())
    with reader:
        return pages.run(reader.ask, args, time_ns())


def _page(reader: Reader, location: Location, args: argparse.Namespace, lang: str) -> Sheet:
    if not reader.runs(limit=1):
        return _empty(location, lang)
    return {"list": _list, "show": _show, "fact": _fact, "work": _work}[args.action](reader, args, lang)


def _prune(location: Location, days: int, args: argparse.Namespace) -> int:
    from assistant.render.sheet import Fields, Sheet, show
    from assistant.store.write import Writer
    from knowledge.facts import vocabulary
    from knowledge.language import Text

    writer = Writer(location, days, vocabulary())
    lang = args.settings.output.lang
    try:
        taken = writer.prune()
    finally:
        writer.close()
        for complaint in writer.complaints:
            say(f"gpudiag: {complaint.in_(lang)}")
    title = Text("Removed from the history", "已从历史中移除").in_(lang)
    rows = tuple((name, str(count)) for name, count in taken.items())
    write(show(Sheet(title, (Fields(rows),), {"removed": taken, "days": days}), args.settings.output))
    return 0


def _empty(location: Location, lang: str) -> Sheet:
    from assistant.render.sheet import Paragraph, Sheet
    from knowledge.language import Text

    nothing = Text(
        "No check is in the history yet ({where}). Every gpudiag check of this machine is added to it, and what gpudiag "
        "watch sees; --no-history leaves one out.",
        "历史中还没有检查（{where}）。对本机的每次 gpudiag check 以及 gpudiag watch 的观察都会写入；--no-history 可跳过一次。",
    )
    words = nothing.in_(lang).format(where=location.shown)
    return Sheet(Text("History", "历史").in_(lang), (Paragraph(words),), {"runs": []})


# --- runs ---------------------------------------------------------------------------------


def _list(reader: Reader, args: argparse.Namespace, lang: str) -> Sheet:
    from assistant.render.labels import label
    from assistant.render.sheet import Sheet, Table
    from knowledge.language import Text

    if args.host:
        _host(reader, args.host)
    runs = reader.runs(args.host, limit=args.limit)
    many = len(reader.hosts()) > 1
    found = {r.id: reader.findings_of(r) for r in runs}
    heads = [
        Text("run", "编号"),
        Text("time", "时间"),
        Text("origin", "方式"),
        Text("verdict", "结论"),
        Text("findings", "发现"),
    ]
    if many:
        heads.insert(1, Text("node", "节点"))
    rows = [
        (
            str(r.id),
            *((r.host,) if many else ()),
            _time(r.as_of),
            r.origin,
            label(r.state, lang),
            _findings(found[r.id], lang),
        )
        for r in runs
    ]
    data = {"runs": [_plain(r, found[r.id], lang) for r in runs]}
    title = Text("History", "历史").in_(lang)
    return Sheet(title, (Table(tuple(h.in_(lang) for h in heads), tuple(rows)),) if rows else (), data)


def _findings(found: Sequence[PastFinding], lang: str) -> str:
    """The root findings of a run, worst first; those that ask for nothing only count."""
    roots = [f for f in found if f.role == "root" and f.severity != "info"]
    ordered = sorted(roots, key=lambda f: (-_rank(f.severity), f.rule, f.key))
    titles = list(dict.fromkeys(f.title.in_(lang) for f in ordered))
    return "; ".join(titles[:3]) + (f" (+{len(titles) - 3})" if len(titles) > 3 else "") if titles else "-"


def _rank(severity: str) -> int:
    words = ("info", "warning", "error", "critical")
    return words.index(severity) if severity in words else -1


def _show(reader: Reader, args: argparse.Namespace, lang: str) -> Sheet:
    from assistant.render.labels import label, localised, subject_name
    from assistant.render.sheet import Fields, Heading, Paragraph, Sheet, Table
    from knowledge.errors import UsageError
    from knowledge.language import Text

    if args.run is None:
        chosen = next(iter(reader.runs(_host(reader, args.host) if args.host else "", limit=1)), None)
    else:
        chosen = reader.run(args.run)
    if chosen is None:
        raise UsageError(f"no run {args.run} is in the history", hint="gpudiag history lists them")

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    found = reader.findings_of(chosen)
    rows = tuple(
        (
            label(f.severity, lang),
            _time(f.opened_at),
            label(f.grade, lang),
            subject_name(f.subject, lang),
            f.title.in_(lang),
        )
        for f in sorted(found, key=lambda f: (f.role != "root", -_rank(f.severity), f.rule, f.key))
    )
    head = (t("severity", "级别"), t("since", "起始"), t("certainty", "把握"), t("about", "对象"), t("finding", "发现"))
    about = (
        (t("node", "节点"), chosen.host), (t("time", "时间"), _time(chosen.as_of)), (t("origin", "方式"), chosen.origin),
        (t("boot", "启动"), chosen.boot_id), ("gpudiag", chosen.version), (t("rules", "规则集"), chosen.ruleset),
    )  # fmt: skip
    silent = tuple(
        (name, f"{status}: {detail}" if detail else status)
        for name, (status, detail) in chosen.probes.items()
        if status != "ok"
    )
    verdict = chosen.text.in_(lang)
    for subject in sorted({f.subject for f in found}, key=lambda s: -len(str(s))):
        verdict = localised(verdict, subject, lang)
    parts: list[Part] = [Paragraph(f"{label(chosen.state, lang)}: {verdict}"), Fields(about)]
    if rows:
        parts += [Heading(t("Found", "发现")), Table(head, rows)]
    if silent:
        parts += [Heading(t("Probes without an answer", "未得到答案的探针")), Fields(silent)]
    return Sheet(t(f"Run {chosen.id}", f"检查 {chosen.id}"), tuple(parts), {"run": _plain(chosen, found, lang)})


def _plain(run: Run, found: Sequence[PastFinding], lang: str) -> dict[str, object]:
    from assistant.render.times import iso

    return {
        "id": run.id, "host": run.host, "as_of": iso(run.as_of), "origin": run.origin, "boot_id": run.boot_id or None,
        "version": run.version, "ruleset": run.ruleset, "exit": run.exit, "probes": {k: list(v) for k, v in run.probes.items()},
        "verdict": {"state": run.state, "usable": run.usable, "text": run.text.in_(lang)},
        "findings": [
            {"id": f.key, "rule": f.rule, "title": f.title.in_(lang), "severity": f.severity, "grade": f.grade, "role": f.role,
             "bucket": f.bucket, "xid": f.xid, "count": f.count, "first_seen": iso(f.opened_at),
             "subject": {"scope": str(f.subject.scope), "id": f.subject.id, "host": f.subject.host or None}}
            for f in found
        ],
    }  # fmt: skip


# --- facts --------------------------------------------------------------------------------


def _fact(reader: Reader, args: argparse.Namespace, lang: str) -> Sheet:
    from time import time_ns

    from assistant.render.sheet import Sheet
    from knowledge.errors import UsageError

    spec = reader.vocabulary[args.name]
    host = _host(reader, args.host)
    back = _back(args.since)
    last = reader.last_run(host)
    until = max(time_ns(), last.as_of if last else 0)
    lines = [line for line in reader.lines(host, args.name, since=until - back) if _is_about(line, args.subject)]
    if not lines:
        raise UsageError(
            f"no samples of {args.name}{f' about {args.subject}' if args.subject else ''} since {args.since} ago on {host}",
            hint="gpudiag explain fact NAME says what tells it",
        )
    parts = [part for line in lines for part in _line(reader, line, args.limit, lang)]
    data = {
        "fact": spec.name,
        "unit": spec.unit or None,
        "host": host,
        "series": [_series(reader, line) for line in lines],
    }
    return Sheet(f"{spec.name}{f' ({spec.unit})' if spec.unit else ''}", tuple(parts), data)


def _back(since: str) -> int:
    from knowledge.errors import UsageError
    from knowledge.units import parse_duration

    try:
        return parse_duration(since)
    except ValueError as error:
        raise UsageError(f"--since: {since!r} is no length of time", hint="for example 90m, 2h, 7d") from error


def _work(reader: Reader, args: argparse.Namespace, lang: str) -> Sheet:
    from time import time_ns

    from assistant.render.labels import subject_name
    from assistant.render.sheet import Sheet, Table
    from assistant.store.course import sparkline
    from assistant.store.worked import worked
    from knowledge.errors import UsageError
    from knowledge.facts import vocabulary
    from knowledge.language import Text

    def figure(value: float | None, unit: str = " %") -> str:
        return "-" if value is None else f"{value:.0f}{unit}"

    def short(kind: str) -> str:  # without the remark behind it: a row has little room
        return words[kind].in_(lang).partition(", ")[0].partition("（")[0]

    host, words = _host(reader, args.host), vocabulary()["gpu.work.class"].labels
    last = reader.last_run(host)
    until = max(time_ns(), last.as_of if last else 0)
    found = worked(reader, host, until - _back(args.since))
    if not found:
        hint = "gpudiag watch keeps a look each round, and check one"
        raise UsageError(f"nobody read how busy the GPUs of {host} were since {args.since} ago", hint=hint)

    columns: tuple[tuple[Text, Callable[[Worked], str]], ...] = (
        (Text("GPU"), lambda w: subject_name(w.gpu, lang)),
        (Text("looks", "次数"), lambda w: str(len(w.busy))),
        (Text("busy", "忙碌"), lambda w: figure(w.mean_busy)),
        (Text("working", "工作"), lambda w: figure(w.mean_sm)),
        (Text("tensor", "tensor"), lambda w: figure(w.mean_tensor)),
        (Text("DRAM"), lambda w: figure(w.mean_dram)),
        (Text("power", "功耗"), lambda w: figure(w.mean_power, f"/{w.power_limit:.0f} W" if w.power_limit else " W")),
        (
            Text("of the looks", "各次所见"),
            lambda w: "; ".join(f"{share:.0f} % {short(kind)}" for kind, share in w.classes[:3]) or "-",
        ),
        (Text("busy over time", "忙碌变化"), lambda w: sparkline(w.busy)),
    )
    shown = [(head, [cell(w) for w in found]) for head, cell in columns]
    shown = [(head, cells) for head, cells in shown if set(cells) != {"-"}]  # what nobody read has no column
    rows = tuple(zip(*(cells for _, cells in shown), strict=True))
    data = {
        "host": host,
        "gpus": [
            {
                "gpu": w.gpu.id,
                "looks": len(w.busy),
                "busy": round(w.mean_busy, 1),
                "working": w.mean_sm,
                "tensor": w.mean_tensor,
                "dram": w.mean_dram,
                "power": w.mean_power,
                "power_limit": w.power_limit,
                "classes": {kind: round(share, 1) for kind, share in w.classes},
            }
            for w in found
        ],
    }
    title = Text("What the GPUs did", "GPU 实际做了什么").in_(lang)
    return Sheet(title, (Table(tuple(head.in_(lang) for head, _ in shown), rows),), data)


def _is_about(line: Line, wanted: str) -> bool:
    """Whether a line's subject, or what it is part of, is called `wanted`."""
    from assistant.store.codec import subject_of
    from knowledge.identity import is_pci, normalise_pci

    if not wanted:
        return True
    names = {s.id for s in subject_of(line.key.subject).ancestors()} | {line.key.subject}
    address = normalise_pci(wanted)
    return wanted in names or (is_pci(address) and address in names)


def _line(reader: Reader, line: Line, limit: int, lang: str) -> list[Part]:
    from assistant.render.changes import shown
    from assistant.render.labels import label, subject_name
    from assistant.render.sheet import Fields, Heading, Table
    from assistant.store.codec import decode, subject_of
    from assistant.store.course import sparkline
    from knowledge.language import Text

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    spec = reader.vocabulary.get(line.key.fact)
    steps = [s for i, s in enumerate(line.samples) if i == 0 or s.cell != line.samples[i - 1].cell]
    rows = tuple(
        (_time(s.at), shown(decode(s.cell, spec), lang) if s.cell.status == "ok" else label(s.cell.status, lang))
        for s in steps[-limit:]
    )
    about = (
        (t("samples", "采样"), str(len(line.samples))),
        (t("source", "来源"), f"{line.key.probe}: {line.call}" if line.call else line.key.probe),
        *_figures(reader, line, lang),
        ("", sparkline(line.samples)),
    )
    title = subject_name(subject_of(line.key.subject), lang)
    more = len(steps) - len(rows)
    newest = t(
        f"value (the newest {len(rows)} of {len(steps)} changes)", f"值（{len(steps)} 次变化中最新的 {len(rows)} 次）"
    )
    return [Heading(title), Fields(about), Table((t("from", "自"), newest if more else t("value", "值")), rows)]


def _figures(reader: Reader, line: Line, lang: str) -> tuple[tuple[str, str], ...]:
    """Rate of a counter, range and trend of a gauge."""
    from assistant.store.course import increase, numbers, rate, trend
    from knowledge.facts import Kind
    from knowledge.language import Text

    spec = reader.vocabulary.get(line.key.fact)
    known = numbers(line.samples)
    if spec is None or len(known) < 2 or spec.kind not in (Kind.COUNTER, Kind.GAUGE):
        return ()
    if spec.kind is Kind.COUNTER:
        per_hour = rate(known, 3600 * 10**9, spec.per_boot)
        grown = f"{increase(known, spec.per_boot):.6g}"
        return (
            (Text("growth", "增长").in_(lang), grown),
            (Text("per hour", "每小时").in_(lang), "" if per_hour is None else f"{per_hour:.6g}"),
        )
    values = [s.cell.num or 0.0 for s in known]
    slope = trend(known, 86_400 * 10**9)
    return (
        (Text("range", "范围").in_(lang), f"{min(values):.6g} .. {max(values):.6g}"),
        (Text("trend per day", "每日趋势").in_(lang), "" if slope is None else f"{slope:+.3g}"),
    )


def _series(reader: Reader, line: Line) -> dict[str, object]:
    from assistant.render.times import iso
    from assistant.store.codec import decode, subject_of
    from assistant.store.course import increase, numbers, rate, trend
    from knowledge.facts import Kind

    spec = reader.vocabulary.get(line.key.fact)
    subject = subject_of(line.key.subject)
    known = numbers(line.samples)
    counter = spec is not None and spec.kind is Kind.COUNTER
    boots = spec is not None and spec.per_boot
    return {
        "subject": {"scope": str(subject.scope), "id": subject.id, "host": subject.host or None},
        "probe": line.key.probe, "call": line.call or None,
        "increase": increase(known, boots) if counter and len(known) > 1 else None,
        "per_hour": rate(known, 3600 * 10**9, boots) if counter else None,
        "trend_per_day": trend(known, 86_400 * 10**9) if spec is not None and spec.kind is Kind.GAUGE else None,
        "samples": [
            {"at": iso(s.at), "status": s.cell.status, "value": _value(decode(s.cell, spec)), "boot_id": s.boot_id or None}
            for s in line.samples
        ],
    }  # fmt: skip


def _value(value: object) -> object:
    from math import isfinite

    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def _host(reader: Reader, wanted: str) -> str:
    """The node that is meant: the named one, the only one, or this machine."""
    from platform import node

    from knowledge.errors import UnknownNameError, UsageError

    hosts = reader.hosts()
    if wanted:
        if wanted not in hosts:
            raise UnknownNameError("node in the history", wanted, hosts)
        return wanted
    if len(hosts) == 1:
        return hosts[0]
    for name in (node(), node().partition(".")[0]):
        if name in hosts:
            return name
    raise UsageError("which node? --host NAME", hint=f"in the history: {', '.join(hosts[:12])}")


def _time(ns: int) -> str:
    from assistant.render.times import iso, readable

    return readable(iso(ns - ns % 10**9))
