"""SXid codes of NVSwitches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from assistant.render.sheet import Code, Fields, Heading, Items, Paragraph, Part, Sheet
from assistant.topics import number
from assistant.topics._common import action_words
from knowledge.catalog.sxid import Chip, SxidEntry, advise, all_sxids, sxid
from knowledge.errors import UnknownNameError
from knowledge.language import Text

KIND = "sxid"
HELP = "an SXid code of an NVSwitch"


def names() -> Iterable[str]:
    """Mnemonics and codes."""
    for e in all_sxids():
        yield e.mnemonic
        yield str(e.code)


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of one code or mnemonic."""
    if len(words) == 1 and not words[0][:1].isdigit():
        found = next((e for e in all_sxids() if e.mnemonic.casefold() == words[0].casefold()), None)
        if found is None:
            raise UnknownNameError(KIND, words[0], (e.mnemonic for e in all_sxids()))
        return _page(found, lang)
    code = number(words, KIND)
    entry = sxid(code)
    if entry is None:
        near = sorted(sorted(all_sxids(), key=lambda e: abs(e.code - code))[:4], key=lambda e: e.code)
        error = UnknownNameError(KIND, str(code), ())
        error.hint = f"the nearest codes of {len(all_sxids())} are {', '.join(str(e.code) for e in near)}"
        raise error
    return _page(entry, lang)


def _word(e: SxidEntry) -> str:
    """What a line of this code says after the number; both words where the switch's set-up decides."""
    return {True: "Fatal", False: "Non-fatal", None: "Fatal|Non-fatal"}[e.fatal()]


def _page(e: SxidEntry, lang: str) -> Sheet:
    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    said = {
        True: t("fatal", "致命"),
        False: t("not fatal", "非致命"),
        None: t("the word of the line decides", "以日志行中的词为准"),
    }
    rows = [
        (t("unit", "单元"), str(e.unit)),
        (t("text", "文本"), e.text),
        (t("in the guide", "手册中的名称"), e.guide_name),
    ]
    for chip, name in ((Chip.LR10, t("A100 class", "A100 一代")), (Chip.LS10, t("H100 class", "H100 一代"))):
        rows.append((name, said[e.fatal(chip=chip)]))
    advice = advise(e.code)
    rows.append((t("action", "动作"), action_words(advice.bucket, lang) if advice.bucket else ""))
    parts: list[Part] = [Paragraph(advice.text.in_(lang)), Fields(tuple(rows))]
    if e.conflicts:
        parts += [Heading(t("Others say", "其他来源的说法"))]
        parts.append(Items(tuple(f"{c.source}: {c.says.in_(lang)}" for c in e.conflicts)))
    parts += [Heading(t("Looks like", "样例"))]
    parts.append(
        Code((f"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): {e.code}, {_word(e)}, Link 12 {e.text or e.title.en}",))
    )
    parts += [Heading(t("Sources", "来源")), Items((advice.source,))]
    return Sheet(f"SXid {e.code}: {e.title.in_(lang)}", tuple(parts), {"kind": KIND, "entry": asdict(e)})
