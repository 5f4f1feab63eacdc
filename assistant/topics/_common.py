"""What pages of several kinds share: pages of signatures, meanings of action words, what other sources say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from assistant.render.sheet import Code, Fields, Heading, Items, Paragraph, Part, Sheet
from knowledge.errors import UnknownNameError
from knowledge.language import Text

if TYPE_CHECKING:
    from knowledge.catalog.cuda import Disagreement
    from knowledge.catalog.lookup import Family, Signature


def action_words(word: str, lang: str) -> str:
    """``RESET_GPU: Stop what uses the GPU and reset it.``; the word alone when it is none of ours."""
    from knowledge.compiled import shard

    said = next((Text.of(b["text"]).in_(lang) for b in shard("buckets") if b["name"] == word), "")
    return f"{word}: {said}" if said else word


def others_say(disagrees: Sequence[Disagreement], lang: str) -> list[Part]:
    """What public sources say otherwise."""
    if not disagrees:
        return []
    heading = Text("Others say", "其他来源的说法").in_(lang)
    return [Heading(heading), Items(tuple(f"{d.source}: {d.says.in_(lang)}" for d in disagrees))]


def sources(names: Iterable[str], lang: str) -> list[Part]:
    """Where an entry comes from."""
    return [Heading(Text("Sources", "来源").in_(lang)), Items(tuple(names))]


def signature_page(s: Signature, kind: str, lang: str, also: Sequence[Signature] = ()) -> Sheet:
    """The page of a line that a library prints."""

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    number = (
        f"{s.symbol or t('number', '编号')}{f' = {s.number}' if s.number is not None else ''}"
        if s.symbol or s.number
        else ""
    )
    parts: list[Part] = [
        Paragraph(s.cause.in_(lang)),
        Fields((
            (t("name", "名称"), number),
            (t("look at next", "下一步查看"), s.check.in_(lang)),
            (t("action", "动作"), action_words(s.bucket, lang)),
            (t("variables", "相关环境变量"), ", ".join(s.environment)),
        )),
    ]  # fmt: skip
    if s.sample:
        parts += [Heading(t("Looks like", "样例")), Code(tuple(s.sample.splitlines()[:6]))]
    if also:
        parts += [
            Heading(t("In the same text", "同一文本中还有")),
            Items(tuple(f"{a.title.in_(lang)} ({a.id})" for a in also)),
        ]
    parts += [*others_say(s.disagrees, lang), *sources(s.sources, lang)]
    return Sheet(s.title.in_(lang), tuple(parts), {"kind": kind, "entry": asdict(s), "also": [a.id for a in also]})


def from_text(words: Sequence[str], family: Family | None, kind: str, lang: str) -> Sheet:
    """The page of the signature that a pasted text holds, or that an id names. UnknownNameError with the nearest."""
    from knowledge.catalog.lookup import find_signature, nearest, signatures

    text = " ".join(words)
    of_family = signatures(family)
    named = next((s for s in of_family if text.casefold() in (s.id.casefold(), s.symbol.casefold())), None)
    if named is not None:
        return signature_page(named, kind, lang)
    found = [m.signature for m in find_signature(text) if family in (None, m.signature.family)]
    if found:
        return signature_page(found[0], kind, lang, found[1:4])
    close = [s.id for s in nearest(text) if family in (None, s.family)]
    error = UnknownNameError(kind, text, (s.symbol or s.id for s in of_family))
    if close and not error.hint:
        error.hint = f"nearest: {', '.join(close)}"
    raise error
