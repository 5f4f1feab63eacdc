"""DCGM's fields and error codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from assistant.render.sheet import Fields, Paragraph, Part, Sheet
from assistant.topics._common import action_words, others_say, sources
from knowledge.catalog.dcgm import DcgmError, DcgmField, error, errors, field, fields
from knowledge.errors import UnknownNameError
from knowledge.language import Text

KIND = "dcgm"
HELP = "a DCGM field (name or number) or error code"


def names() -> Iterable[str]:
    """Names of fields, of any version, and of errors."""
    for f in fields().values():
        yield f.name
        yield from (a.name for a in f.aliases)
    yield from errors()


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of a field, or of an error when no field has the name. A bare number is a field's."""
    word = " ".join(words)
    if (found := field(word) or field(word.upper()) or field(word.lower())) is not None:
        return _field(found, lang)
    if (code := error(word)) is not None:
        return _error(code, lang)
    raise UnknownNameError(KIND, word, names())


def _field(f: DcgmField, lang: str) -> Sheet:
    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    off = t("off: listed but commented out", "未启用：列出但被注释")
    exported = t("on", "启用") if f.exported_by_default else off if f.listed_but_off else t("off", "未启用")
    kinds = {"gauge": t("gauge", "量表"), "counter": t("counter", "计数器"), "label": t("label", "标签")}
    parts: list[Part] = [
        Paragraph(f.meaning.in_(lang)),
        Fields((
            (t("number", "编号"), str(f.id) if f.id is not None else t("none: the exporter computes it", "无：由导出器计算")),
            (t("kind", "类别"), kinds[str(f.kind)]),
            (t("unit", "单位"), f.unit),
            (t("about", "对象"), f.entity),
            (t("dcgm-exporter default", "dcgm-exporter 默认"), exported),
            (t("misread as", "常见误读"), f.traps.in_(lang) if f.traps else ""),
            (t("also named", "其他名称"), ", ".join(f"{a.name} ({a.versions})" for a in f.aliases)),
            (t("since", "起始版本"), f.since),
        )),
        *others_say(f.disagrees, lang),
        *sources(f.sources, lang),
    ]  # fmt: skip
    return Sheet(f.name, tuple(parts), {"kind": KIND, "entry": asdict(f)})


def _error(e: DcgmError, lang: str) -> Sheet:
    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    parts: list[Part] = [
        Paragraph(e.meaning.in_(lang)),
        Fields((
            (t("number", "编号"), str(e.code) if e.code is not None else t("differs between versions", "因版本而异")),
            (t("DCGM's severity", "DCGM 级别"), e.severity),
            (t("category", "类别"), e.category),
            (t("NVSentinel's action", "NVSentinel 动作"), e.action),
            (t("our advice", "我们的建议"), action_words(e.bucket, lang)),
            (t("present name", "现用名称"), e.alias_of),
        )),
        *others_say(e.disagrees, lang),
        *sources(e.sources, lang),
    ]  # fmt: skip
    return Sheet(e.name, tuple(parts), {"kind": KIND, "entry": asdict(e)})
