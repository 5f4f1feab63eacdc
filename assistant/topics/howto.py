"""Tasks: how something is set, read, reset or collected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from assistant.render.labels import label
from assistant.render.sheet import Code, Fields, Heading, Paragraph, Part, Sheet
from assistant.topics._common import sources
from knowledge.errors import UnknownNameError
from knowledge.howto import Howto, howtos
from knowledge.language import Text
from knowledge.runbook import Risk, fill

KIND = "howto"
HELP = "a task: enable ECC, reset a GPU, drain a node, read throttle reasons, ..."


def names() -> Iterable[str]:
    """Ids and titles of all tasks."""
    for h in howtos().values():
        yield from (h.id, h.title.en, h.title.zh)


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of one task."""
    return page(find(" ".join(words)), lang)


def find(name: str) -> Howto:
    """The task called `name`: its id, title or one of its phrases. UnknownNameError with the nearest."""
    wanted = name.casefold().strip()
    for h in howtos().values():
        if wanted in (h.id, h.id.replace("-", " "), h.title.en.casefold(), h.title.zh.casefold()):
            return h
    for h in howtos().values():
        if wanted in (phrase.casefold() for phrase in h.ask):
            return h
    raise UnknownNameError(KIND, name, howtos())


def page(h: Howto, lang: str, values: Mapping[str, str | int] | None = None) -> Sheet:
    """The page of `h`, its commands filled in with `values` of `knowledge.runbook.PLACEHOLDERS`."""
    parts: list[Part] = [Paragraph(h.about.in_(lang)), *steps(h, lang, values or {}), *sources(h.sources, lang)]
    return Sheet(h.title.in_(lang), tuple(parts), {"kind": KIND, "entry": asdict(h)})


def steps(h: Howto, lang: str, values: Mapping[str, str | int]) -> list[Part]:
    """The numbered steps with command, risk and note, how to see that it worked, and the runbook."""

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    out: list[Part] = []
    for n, step in enumerate(h.steps, 1):
        out.append(Heading(f"{n}. {step.do.in_(lang)}"))
        if step.command:
            out.append(Code((fill(step.command, values),)))
        risk = "" if step.risk is Risk.SAFE else label(str(step.risk), lang)
        out.append(Fields(((t("risk", "风险"), risk), (t("note", "注意"), step.note.in_(lang)))))
    if h.verify:
        out += [Heading(t("It worked when", "成功的标志")), Paragraph(h.verify.in_(lang))]
        if h.verify_command:
            out.append(Code((fill(h.verify_command, values),)))
    if h.runbook:
        out.append(Fields(((t("runbook", "处置手册"), h.runbook),)))
    return out
