"""``gpudiag doctor``: what this installation can and cannot see, here or on another machine, and what would mend each gap."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from assistant.commands.check import add_probing, probing, wish
from assistant.inventory.target import add_target
from assistant.output import Progress, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assistant.config import Settings
    from assistant.doctor import Checkup, Row
    from assistant.inventory.model import Node
    from knowledge.language import Text

NAME = "doctor"
HELP = "what this installation can and cannot see, here or on another machine, and what mends each gap"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of a look at a machine."""
    add_target(parser, host="whether this node can be looked at from here, and what of it")
    add_probing(parser)


def run(args: argparse.Namespace) -> int:
    """Look, and print. 1 when something is broken that a diagnosis rests on, else 0."""
    from assistant.inventory.target import settle, target
    from assistant.render.sheet import show

    settle(args)
    other = target(args)
    bar = Progress(args.quiet)
    try:
        found = checkup(args, bar) if other is None else _there(args, bar, other)
    finally:
        bar.done()
    write(show(_sheet(found, args.settings.output.lang), args.settings.output))
    return 1 if found.broken else 0


def checkup(args: argparse.Namespace, bar: Progress) -> Checkup:
    """Everything that can be told about this installation on this machine."""
    from assistant import doctor, machine
    from assistant.config import state_folder
    from probes.live import probes

    settings: Settings = args.settings
    rules, problems = _rules(settings)
    look = machine.here(settings, wish(args), probing(bar))
    return doctor.Checkup(
        tuple(doctor.installation(state_folder(settings), problems)),
        tuple(doctor.rights()),
        tuple(doctor.sources(look.results, probes(), rules)),
        reach=doctor.reach(look.results, probes(), rules),
    )


def _there(args: argparse.Namespace, bar: Progress, other: Node) -> Checkup:
    """Everything that can be told about another machine."""
    from assistant.inventory.checkup import checkup

    bar(f"connecting to {other.name}")
    rules, _ = _rules(args.settings)
    return checkup(args.settings, other, wish(args), rules, probing(bar))


def _rules(settings: Settings) -> tuple[Sequence[Any], list[tuple[str, Text, Text]]]:
    """The rules in force; without the site's own when those cannot be loaded, which is told."""
    from knowledge.errors import GpudiagError
    from knowledge.language import Text
    from rules.loader import load

    try:
        return load(settings.rules.packs, site=settings.rules.site_file).rules, []
    except GpudiagError as error:
        fix = Text("gpudiag rules lint", "gpudiag rules lint")
        return load().rules, [("rules", Text(error.message), fix)]


def _sheet(found: Checkup, lang: str) -> Any:
    from assistant.render.sheet import Heading, Items, Paragraph, Sheet, Table
    from knowledge.language import Text

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    parts: list[Any] = []
    groups = (
        (t("Connection", "连接") if found.host else t("Installation", "安装"), found.installation), (t("Rights", "权限"), found.rights), (t("Sources", "来源"), found.probes),
    )  # fmt: skip
    for title, rows in groups:
        if not rows:  # of a machine that cannot be reached
            continue
        parts += [
            Heading(title),
            Table(
                ("", t("what", "项目"), t("finding", "结果")), tuple((_sign(r), r.name, r.says.in_(lang)) for r in rows)
            ),
        ]
    fixes = [r for r in (*found.installation, *found.rights, *found.probes) if r.fix]
    if fixes:
        parts += [
            Heading(t("To see more", "如何看到更多")),
            Items(tuple(_fix(group, lang) for group in _grouped(fixes))),
        ]
    verdict = (
        t("Something is in the way.", "存在障碍。") if found.broken else t("Nothing is in the way.", "一切就绪。")
    )  # fmt: skip
    r = found.reach
    missing = []
    if r.lost and r.no_gpu:
        missing = [Paragraph(t(f"No GPU is on the bus: {r.lost} of the {r.rules} rules about a machine cannot be answered here.",
                               f"总线上没有 GPU：{r.rules} 条关于机器的规则中有 {r.lost} 条在此无法判断。"))]  # fmt: skip
    elif r.lost:
        missing = [Paragraph(t(f"{r.lost} of the {r.rules} rules about a machine cannot be answered here.",
                               f"{r.rules} 条关于机器的规则中有 {r.lost} 条在此无法判断。"))]  # fmt: skip
    if r.no_gpu and not found.broken:
        verdict = t("Nothing is in the way of what is here.", "现有的来源均可读取。")
    data = {
        "rules": {"of_a_machine": r.rules, "not_answerable": r.lost},
        "ok": not found.broken,
        **({"host": found.host} if found.host else {}),
        **{n: [_row(r, lang) for r in getattr(found, n)] for n in ("installation", "rights", "probes")},
    }
    title = t("gpudiag doctor", "gpudiag 自检")
    return Sheet(
        f"{title}: {found.host}" if found.host else title,
        (*(missing if r.no_gpu else ()), Paragraph(verdict), *(() if r.no_gpu else missing), *parts),
        data,
    )


def _sign(row: Row) -> str:
    return {True: "ok", False: "NO", None: "-"}[row.ok]


def _grouped(rows: Sequence[Row]) -> list[list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.fix.en, []).append(row)
    return list(groups.values())


def _fix(rows: Sequence[Row], lang: str) -> str:
    from knowledge.language import Text

    names = ", ".join(dict.fromkeys(r.name for r in rows))
    lost = max(r.rules for r in rows)
    more = Text(f" ({lost} rules need it)", f"（{lost} 条规则需要）").in_(lang) if lost else ""
    return f"{names}: {rows[0].fix.in_(lang)}{more}"


def _row(row: Row, lang: str) -> dict[str, Any]:
    state = {True: "ok", False: "problem", None: "absent"}[row.ok]
    return {
        "name": row.name,
        "state": state,
        "says": row.says.in_(lang),
        "fix": row.fix.in_(lang) or None,
        "rules": row.rules,
    }
