"""Action words: what RESET_GPU and its kin ask for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assistant.render.labels import label
from assistant.render.sheet import Code, Fields, Paragraph, Part, Sheet
from knowledge.errors import UnknownNameError
from knowledge.language import Text
from rules.model import Bucket
from rules.resolve import buckets

KIND = "action"
HELP = "an action word such as RESET_GPU"


def names() -> Iterable[str]:
    """Every action word."""
    return (str(b) for b in Bucket)


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of one action word."""
    name = "_".join(words).upper().replace("-", "_")
    if name not in Bucket.__members__:
        if name.startswith("WORKFLOW_XID_") and name[13:].isdecimal():  # NVIDIA's steps for one code: its page has them
            from assistant.topics import xid

            return xid.sheet([name[13:]], lang)
        raise UnknownNameError("action", " ".join(words), names())
    info = buckets()[Bucket(name)]

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    usable = {
        "yes": t("yes", "可以"),
        "no": t("no", "不可以"),
        "impaired": t("nothing new", "不派新任务"),
        "not_yet": t("not yet", "暂不可以"),
        "unknown": t("unknown", "未知"),
    }
    parts: list[Part] = [
        Paragraph(info.text.in_(lang)),
        Code((info.command,) if info.command else ()),
        Fields((
            (t("risk", "风险"), label(str(info.risk), lang)),
            (t("go on using it", "可否继续使用"), usable[str(info.usable)]),
            (t("until", "直到"), info.until.in_(lang)),
            (t("runbook", "处置手册"), info.runbook),
        )),
    ]  # fmt: skip
    data = {
        "kind": KIND, "name": name, "text": info.text.in_(lang), "command": info.command or None, "risk": str(info.risk),
        "usable": str(info.usable), "until": info.until.in_(lang) or None, "runbook": info.runbook or None,
    }  # fmt: skip
    return Sheet(name, tuple(parts), data)
