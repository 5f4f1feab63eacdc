"""CUDA status codes: runtime, driver, cuBLAS, cuDNN."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from assistant.render.sheet import Code, Fields, Heading, Paragraph, Part, Sheet
from assistant.topics._common import action_words, from_text, others_say, sources
from knowledge.catalog.cuda import CudaStatus, all_statuses, find
from knowledge.catalog.lookup import Family
from knowledge.errors import UnknownNameError, nearest_hint
from knowledge.language import Text

KIND = "cuda"
HELP = "a CUDA, cuBLAS or cuDNN status by number, name or message"


def names() -> Iterable[str]:
    """Names of all codes."""
    return (name for e in all_statuses() for name in (e.name, e.driver_name) if name)


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of a code: ``719``, ``cudaErrorLaunchFailure``, or a text that holds one."""
    known = find(words[0]) if len(words) == 1 else None
    if known:
        return _page(known, lang)
    try:
        return from_text(words, Family.CUDA, KIND, lang)
    except UnknownNameError as error:
        error.hint = error.hint or _hint(words)
        raise


def _hint(words: Sequence[str]) -> str:
    """For a number the codes around it, for a word the nearest names."""
    word = words[0] if len(words) == 1 else ""
    if not word.isdecimal():
        return nearest_hint(word, names()) or "give a number, a name such as cudaErrorNoDevice, or the message"
    codes = sorted({e.code for e in all_statuses()}, key=lambda c: (abs(c - int(word)), c))[:4]
    return f"the nearest codes are {', '.join(map(str, sorted(codes)))}"


def _page(e: CudaStatus, lang: str) -> Sheet:
    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    words = {
        "yes": t("yes", "是"),
        "no": t("no", "否"),
        "maybe": t("perhaps", "可能"),
        "in_practice": t("in practice, though the headers do not say so", "实际如此，头文件未说明"),
        "possible": t("perhaps", "可能"),
    }
    parts: list[Part] = [
        Paragraph(e.cause.in_(lang)),
        Fields((
            (t("code", "编号"), str(e.code)),
            (t("library", "库"), str(e.api)),
            (t("driver's name", "驱动 API 名称"), e.driver_name),
            (t("process must restart", "需重启进程"), words.get(str(e.sticky), str(e.sticky))),
            (t("hardware to blame", "与硬件有关"), words.get(str(e.hardware), str(e.hardware))),
            (t("look at next", "下一步查看"), e.check.in_(lang)),
            (t("action", "动作"), action_words(e.bucket, lang)),
            (t("since", "起始版本"), e.since),
        )),
    ]  # fmt: skip
    if e.messages:
        parts += [Heading(t("Printed as", "打印为")), Code(e.messages)]
    parts += [*others_say(e.disagrees, lang), *sources(e.sources, lang)]
    return Sheet(f"{e.name}: {e.title.in_(lang)}", tuple(parts), {"kind": KIND, "entry": asdict(e)})
