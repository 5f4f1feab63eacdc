"""CUDA status codes: runtime, driver, cuBLAS, cuDNN."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from assistant.render.sheet import Code, Fields, Heading, Paragraph, Part, Sheet
from assistant.topics._common import action_words, from_text, others_say, sources
from knowledge.catalog.cuda import CudaStatus, all_statuses, find
from knowledge.catalog.lookup import Family
from knowledge.language import Text

KIND = "cuda"
HELP = "a CUDA, cuBLAS or cuDNN status by number, name or message"


def names() -> Iterable[str]:
    """Names of all codes."""
    return (name for e in all_statuses() for name in (e.name, e.driver_name) if name)


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of a code: ``719``, ``cudaErrorLaunchFailure``, or a text that holds one."""
    known = find(words[0]) if len(words) == 1 else None
    return _page(known, lang) if known else from_text(words, Family.CUDA, KIND, lang)


def _page(e: CudaStatus, lang: str) -> Sheet:
    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    words = {
        "yes": t("yes", "是"),
        "no": t("no", "否"),
        "maybe": t("perhaps", "可能"),
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
