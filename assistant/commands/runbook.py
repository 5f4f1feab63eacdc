"""``gpudiag runbook``: what to do about a finding, step by step."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from assistant.output import write

if TYPE_CHECKING:
    from pathlib import Path

    from assistant.render.sheet import Part, Sheet
    from knowledge.runbook import Runbook, Step

NAME = "runbook"
HELP = "list, show and check runbooks, and walk one on paper"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``runbook list | show ID | lint [FOLDER] | run ID --dry-run``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", title="actions")
    actions.add_parser("list", help="every runbook with its topics")
    one = actions.add_parser("show", help="one runbook, step by step")
    one.add_argument("id", help="name of the runbook")
    lint = actions.add_parser("lint", help="check runbook files; exit code 2 on faults")
    lint.add_argument("folder", nargs="?", help="folder with runbook files (default: the shipped ones and the site's)")
    _add_run(actions.add_parser("run", help="--dry-run: which steps would be taken by what is known; nothing runs"))


def _add_run(parser: argparse.ArgumentParser) -> None:
    from assistant.commands.check import add_probing
    from assistant.inventory.target import add_target

    add = parser.add_argument
    add("id", help="name of the runbook")
    add("files", nargs="*", metavar="FILE", help="the same as --input FILE")
    add("--dry-run", action="store_true", help="walk it on paper")
    add("--log", nargs="+", action="extend", default=[], metavar="FILE", help="logs instead of this machine")
    add("--input", nargs="+", action="extend", default=[], metavar="FILE", help="any captured output")
    add("--bundle", default="", metavar="FILE", help="a recorded machine")
    add("--host", default="", metavar="NAME", help="look at this node; beside FILEs: the node that they come from")
    add("--site", metavar="FILE", help="site file: changed thresholds and severities, suppressed rules")
    add("--rules", action="append", default=[], metavar="PACK", help="rule file or folder laid over the shipped rules")
    add_target(parser)
    add_probing(parser, " (without FILEs and --bundle)")
    parser.set_defaults(record="", since_last=False, since_good=False, no_history=False, expect_gpus=None)


def run(args: argparse.Namespace) -> int:
    """Do the action."""
    from assistant.render.sheet import show

    output = args.settings.output
    if args.action == "lint":
        return _lint(args.folder, args.settings.runbook_dirs)
    complain(args.quiet)
    if args.action == "run":
        return _walk(args)
    write(show(_list(output.lang) if args.action == "list" else page(args.id, output.lang), output))
    return 0


def complain(quiet: bool = False) -> None:
    """A line for each runbook of the site that does not count, with the reason."""
    from assistant.output import say
    from knowledge.runbook import site_faults

    for fault in site_faults():
        say(f"gpudiag: this runbook does not count: {fault}", quiet)


def _walk(args: argparse.Namespace) -> int:
    from assistant.commands.check import diagnosed
    from assistant.render.sheet import show
    from assistant.runbooks import dry, pages
    from assistant.runbooks.judging import Judge
    from knowledge.errors import UsageError
    from knowledge.runbook import runbook

    book = runbook(args.id)
    if not args.dry_run:
        raise UsageError(
            "a runbook is run within an incident, so that it is known who did what",
            hint="gpudiag incident open, then gpudiag incident run NUMBER; --dry-run walks it on paper",
        )
    found = diagnosed(args)
    host = found.look.host if found.look is not None else args.host
    subjects, values = dry.of_diagnosis(book, found.diagnosis, host)
    plan = dry.plan(book, Judge(found.diagnosis.facts, subjects), values)
    write(show(pages.sheet(plan, args.settings.output.lang), args.settings.output))
    return 0


def _list(lang: str) -> Sheet:
    from assistant.render.sheet import Sheet, Table
    from knowledge.language import Text
    from knowledge.runbook import all_runbooks

    books = all_runbooks()
    header = tuple(t.in_(lang) for t in (Text("runbook", "处置手册"), Text("title", "标题")))
    rows: tuple[tuple[str, ...], ...] = tuple((b.id, b.title.in_(lang)) for b in books)
    if any(b.file for b in books):
        header = (*header, Text("from", "来源").in_(lang))
        rows = tuple((b.id, b.title.in_(lang), _origin(b, lang)) for b in books)
    data = {
        "runbooks": [
            {"id": b.id, "title": b.title.in_(lang), "applies": list(b.applies), "file": b.file or None, "replaces": b.replaces}
            for b in books
        ]
    }  # fmt: skip
    return Sheet(Text(f"{len(books)} runbooks", f"{len(books)} 份处置手册").in_(lang), (Table(header, rows),), data)


def _origin(b: Runbook, lang: str) -> str:
    """Where a site's runbook comes from, and whether it stands in for a shipped one; empty for a shipped one."""
    from knowledge.language import Text
    from knowledge.text import clean

    if not b.file:
        return ""
    file = clean(b.file)
    said = (
        Text(f"{file}, in place of the shipped one", f"{file}，取代内置的同名手册") if b.replaces else Text(file, file)
    )
    return said.in_(lang)


def page(name: str, lang: str) -> Sheet:
    """One runbook as a page. UnknownNameError with the nearest ids."""
    from dataclasses import asdict

    from assistant.render.sheet import Fields, Heading, Items, Paragraph, Sheet
    from knowledge.errors import UnknownNameError
    from knowledge.language import Text
    from knowledge.runbook import runbook

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    try:
        b = runbook(name)
    except UnknownNameError as error:
        error.hint = error.hint or "gpudiag runbook list names them all"
        raise
    parts: list[Part] = [
        Paragraph(b.summary.in_(lang)),
        Fields(((t("for", "适用"), ", ".join(b.applies)), (t("from", "来源"), _origin(b, lang)))),
        *_steps(b, lang),
        Heading(t("Background", "背景")),
        Paragraph(_unmarked(b.body.in_(lang))),
        Heading(t("Sources", "来源")),
        Items(b.references),
    ]
    return Sheet(b.title.in_(lang), tuple(parts), {"kind": "runbook", "entry": asdict(b)})


def _steps(b: Runbook, lang: str) -> list[Part]:
    from assistant.render.labels import label
    from assistant.render.sheet import Code, Fields, Heading, Paragraph
    from knowledge.language import Text

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    from assistant.runbooks.pages import condition
    from knowledge.units import format_duration

    out: list[Part] = []
    consent = {"none": "", "operator": t("the operator's", "运维人员"), "owner": t("the owner's", "所有者")}
    for n, step in enumerate(b.steps, 1):
        out.append(Heading(f"{n}. {step.title.in_(lang)}"))
        out.append(Paragraph(step.do.in_(lang)))
        if step.command:
            out.append(Code((step.command,)))
        out.append(
            Fields((
                (t("if", "条件"), condition(step.only_if, lang)),
                (t("when", "何时"), step.when.in_(lang)),
                (t("risk", "风险"), "" if step.risk == "safe" else label(str(step.risk), lang)),
                (t("consent", "需经同意"), consent.get(str(step.consent), "")),
                (t("done when", "完成标志"), step.verify.in_(lang)),
                (t("verified by", "核对条件"), condition(step.verify_if, lang)),
                (t("check with", "核对命令"), step.verify_command),
                (t("loop", "循环"), _loop(step, lang)),
                (t("at most", "时限"), format_duration(step.timeout) if step.timeout else ""),
                (t("then", "然后"), step.next),
                (t("otherwise", "否则"), step.on_failure),
            ))
        )  # fmt: skip
    return out


def _loop(step: Step, lang: str) -> str:
    from assistant.runbooks.pages import condition
    from knowledge.language import Text
    from knowledge.units import format_duration

    if step.repeat is None:
        return ""
    n, every, until = step.repeat.at_most, format_duration(step.repeat.every), condition(step.repeat.until, lang)
    return Text(f"at most {n} times, every {every}, until {until}", f"至多 {n} 次，每 {every} 一次，直到 {until}").in_(
        lang
    )


def _unmarked(text: str) -> str:
    """The page's Markdown as running text: blank lines end a paragraph, list marks stay."""
    import re

    blocks = re.split(r"\n\s*\n", text.strip())
    lines = [re.sub(r"\s*\n(?!\s*(?:[-*]|\d+\.) )\s*", " ", block) for block in blocks]
    return "\n".join(re.sub(r"\*\*(.+?)\*\*|`(.+?)`", lambda m: m[1] or m[2], line) for line in lines)


def _lint(folder: str | None, site: tuple[Path, ...]) -> int:
    from pathlib import Path

    from assistant.exits import Exit
    from assistant.runbooks.judging import checks
    from knowledge import runbook
    from knowledge.errors import Fault

    folders = [Path(folder)] if folder else [runbook.FOLDER, *site]
    files = [file for where in folders for file in sorted(where.glob("*.md"))]
    faults = [Fault(str(f), 1, 1, "the folder of runbooks cannot be read") for f in folders if not f.is_dir()]
    faults += [fault for where in folders for fault in runbook.lint(where, checks())]
    write("".join(f"{fault}\n" for fault in faults))
    write(f"{len(files)} runbooks, {len(faults)} faults\n")
    return Exit.OK if files and not faults else Exit.USAGE
