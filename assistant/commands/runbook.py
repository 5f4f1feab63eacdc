"""``gpudiag runbook``: what to do about a finding, step by step."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from assistant.output import write

if TYPE_CHECKING:
    from assistant.render.sheet import Part, Sheet
    from knowledge.runbook import Runbook

NAME = "runbook"
HELP = "list, show and check runbooks"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``runbook list | show ID | lint [FOLDER]``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", title="actions")
    actions.add_parser("list", help="every runbook with its topics")
    one = actions.add_parser("show", help="one runbook, step by step")
    one.add_argument("id", help="name of the runbook")
    lint = actions.add_parser("lint", help="check runbook files; exit code 2 on faults")
    lint.add_argument("folder", nargs="?", help="folder with runbook files (default: the shipped ones)")


def run(args: argparse.Namespace) -> int:
    """Do the action."""
    from assistant.render.sheet import show

    output = args.settings.output
    if args.action == "lint":
        return _lint(args.folder)
    write(show(_list(output.lang) if args.action == "list" else page(args.id, output.lang), output))
    return 0


def _list(lang: str) -> Sheet:
    from assistant.render.sheet import Sheet, Table
    from knowledge.language import Text
    from knowledge.runbook import all_runbooks

    books = all_runbooks()
    header = tuple(t.in_(lang) for t in (Text("runbook", "处置手册"), Text("title", "标题")))
    rows = tuple((b.id, b.title.in_(lang)) for b in books)
    data = {"runbooks": [{"id": b.id, "title": b.title.in_(lang), "applies": list(b.applies)} for b in books]}
    return Sheet(Text(f"{len(books)} runbooks", f"{len(books)} 份处置手册").in_(lang), (Table(header, rows),), data)


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
        Fields(((t("for", "适用"), ", ".join(b.applies)),)),
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

    out: list[Part] = []
    consent = {"none": "", "operator": t("the operator's", "运维人员"), "owner": t("the owner's", "所有者")}
    for n, step in enumerate(b.steps, 1):
        out.append(Heading(f"{n}. {step.title.in_(lang)}"))
        out.append(Paragraph(step.do.in_(lang)))
        if step.command:
            out.append(Code((step.command,)))
        out.append(
            Fields((
                (t("when", "何时"), step.when.in_(lang)),
                (t("risk", "风险"), "" if step.risk == "safe" else label(str(step.risk), lang)),
                (t("consent", "需经同意"), consent.get(str(step.consent), "")),
                (t("done when", "完成标志"), step.verify.in_(lang)),
                (t("check with", "核对命令"), step.verify_command),
                (t("otherwise", "否则"), step.on_failure),
            ))
        )  # fmt: skip
    return out


def _unmarked(text: str) -> str:
    """The page's Markdown as running text: blank lines end a paragraph, list marks stay."""
    import re

    blocks = re.split(r"\n\s*\n", text.strip())
    lines = [re.sub(r"\s*\n(?!\s*(?:[-*]|\d+\.) )\s*", " ", block) for block in blocks]
    return "\n".join(re.sub(r"\*\*(.+?)\*\*|`(.+?)`", lambda m: m[1] or m[2], line) for line in lines)


def _lint(folder: str | None) -> int:
    from pathlib import Path

    from assistant.exits import Exit
    from knowledge import runbook

    where = Path(folder) if folder else runbook.FOLDER
    files = sorted(where.glob("*.md"))
    faults = runbook.lint(where)
    write("".join(f"{fault}\n" for fault in faults))
    write(f"{len(files)} runbooks, {len(faults)} faults\n")
    return Exit.OK if files and not faults else Exit.USAGE
