"""Clock event reasons: what holds a GPU's clocks down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from assistant.render.labels import colon, listed
from assistant.render.sheet import Fields, Items, Paragraph, Part, Sheet
from assistant.topics._common import action_words, others_say, sources
from knowledge.catalog.clock_events import ClockEvent, all_events, decode, find
from knowledge.errors import UnknownNameError
from knowledge.language import Text

KIND = "clock"
HELP = "a clock event reason (throttle reason) by name, or a mask such as 0x84"


def names() -> Iterable[str]:
    """Every name, old and new."""
    return (name for e in all_events() for name in e.names)


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of a reason, or the reasons that a mask holds."""
    word = " ".join(words)
    found = find(word)
    if found is not None:
        return _page(found, lang)
    mask = _mask(word)
    if mask is None or not decode(mask)[0]:
        raise UnknownNameError(KIND, word, (e.id for e in all_events()))
    reasons, rest = decode(mask)
    lines = [
        f"0x{e.bit:x} {e.label}: {e.meaning.in_(lang)} {Text('A fault', '是否故障').in_(lang)}{colon(lang)}{e.fault_when.in_(lang)}"
        for e in reasons
    ]
    if rest:
        lines.append(f"0x{rest:x}: {Text('not known', '未知').in_(lang)}")
    return Sheet(
        f"0x{mask:x}{colon(lang)}{listed([e.label for e in reasons], lang)}",
        (Items(tuple(lines)),),
        {"kind": KIND, "mask": mask, "reasons": [e.id for e in reasons], "rest": rest},
    )


def _mask(word: str) -> int | None:
    try:
        return int(word, 0)
    except ValueError:
        return None


def _page(e: ClockEvent, lang: str) -> Sheet:
    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    fault = {"no": t("no", "否"), "yes": t("yes", "是"), "depends": t("depends", "视情况")}[str(e.fault)]
    parts: list[Part] = [
        Paragraph(e.meaning.in_(lang)),
        Fields((
            (t("bit", "位"), f"0x{e.bit:x}"),
            (t("a fault", "是否故障"), f"{fault}. {e.fault_when.in_(lang)}" if lang != "zh" else f"{fault}。{e.fault_when.in_(lang)}"),
            (t("look at next", "下一步查看"), e.check.in_(lang)),
            (t("action", "动作"), action_words(e.bucket, lang)),
            (t("names", "名称"), ", ".join(e.names)),
        )),
        *others_say(e.disagrees, lang),
        *sources(e.sources, lang),
    ]  # fmt: skip
    return Sheet(e.label, tuple(parts), {"kind": KIND, "entry": asdict(e)})
