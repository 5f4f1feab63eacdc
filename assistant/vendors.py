"""GPUs of other vendors in a verdict: how many of whose, and those of whose health nothing told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from knowledge.facts import vocabulary
from knowledge.language import Text
from knowledge.observation import Scope, Status, gpu
from rules.factbase import FactBase

# How the titles of the formats begin that tell of a vendor's GPUs.
TOOLS = {"amd": "amd-smi", "intel": "xpu-smi", "huawei": "npu-smi", "habana": "hl-smi", "moorethreads": "mthreads-gmi"}


def not_judged(facts: FactBase) -> Text | None:
    """What the first line says when the health of some accelerators is not known; None when all were judged, or none is there."""
    found = []
    for k in facts.observations:
        o = k.inner
        if o.fact == "node.gpus.not_judged" and o.status is Status.OK and isinstance(o.value, tuple):
            found += [gpu(identifier, o.subject.host) for identifier in o.value]
    if not found:
        return None
    makers = Counter(_vendor(facts, device) for device in found)
    said = {lang: _list(makers, lang) for lang in ("en", "zh")}
    why = _why(facts, makers)
    return Text(
        f"Cannot say: nothing wrong was seen, but nothing told the health of {said['en']}{f' ({why})' if why else ''}.",
        f"无法判断：未发现问题，但没有读到 {said['zh']}的健康状态{f'（{why}）' if why else ''}。",
    )


def _vendor(facts: FactBase, device: object) -> str:
    return next(
        (str(k.inner.value) for k in facts.observations if k.fact == "gpu.vendor" and k.inner.subject == device),
        "other",
    )


def _list(makers: Counter[str], lang: str) -> str:
    labels = vocabulary()["gpu.vendor"].labels
    words = []
    for name, count in sorted(makers.items()):
        label = labels[name].in_(lang) if name in labels else name
        words.append(f"{count} GPU{'s' if count > 1 else ''} of {label}" if lang == "en" else f"{count} 个{label} GPU ")
    return " and ".join(words) if lang == "en" else "、".join(words)


def _why(facts: FactBase, makers: Iterable[str]) -> str:
    """What the vendor's tool or driver answered instead; empty when nobody asked it."""
    wanted = {f"node.gpus.{name}" for name in makers}
    said = [
        k.inner.detail
        for k in facts.observations
        if k.fact in wanted and not k.inner.status.answered and k.inner.subject.scope is Scope.NODE and k.inner.detail
    ]
    return said[0] if said else ""
