"""GPUs of other vendors in a verdict: how many of whose, those of whose health nothing told, and what to give next in their world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from knowledge.facts import vocabulary
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.observation import Scope, Status, gpu
from rules.factbase import FactBase

# How the titles of the formats begin that tell of a vendor's GPUs.
TOOLS = {"amd": "amd-smi", "intel": "xpu-smi", "huawei": "npu-smi", "habana": "hl-smi", "moorethreads": "mthreads-gmi"}
_IN_SHORT_TABLE = "gpu.readings.absent"  # told of the rows of such a table alone
_BAD_PAGES = ("gpu.bad_pages.retired", "gpu.bad_pages.pending", "gpu.bad_pages.failed")
# Words of an input that no parser reads -> the world that it is of, the more exact first; without one it is NVIDIA's.
_WORLDS = (
    ("amd", lazy(r"(?i)\bamd-?smi\b|\brocm|\bamdgpu\b|\bInstinct MI\d")),
    ("intel", lazy(r"(?i)\bxpu-smi\b|Data Center GPU (?:Max|Flex)")),
    ("huawei", lazy(r"(?i)\bnpu-smi\b|\bascend\b")),
    ("habana", lazy(r"(?i)\bhl-smi\b|\bgaudi\b")),
    ("moorethreads", lazy(r"(?i)\bmthreads-gmi\b")),
    ("nvidia", lazy(r"(?i)nvidia|\bdcgm|\bnvlink\b|\bGPU-[0-9a-f]{8}-|\bCUDA Version\b")),
    (
        "job",
        lazy(
            r"Traceback \(most|\braylet\b|\bray\.|\btorch\b|\bjax\b|tensorflow|\bNCCL\b|\brank ?\d|\bloss\b|\bworkers?\b"
        ),
    ),
    (
        "storage",
        lazy(
            r"(?i)\bgpfs|\bmmfs|\blustre|\bbeegfs|\bweka|\bnfs\b|\bceph|\bawait\b|\biops\b|\bmount\b|\bfilesystem\b|\bdisk\b"
        ),
    ),
)
_LOG = Text("the kernel log (`journalctl -k -b`) of the node", "该节点的内核日志（`journalctl -k -b`）")
_OF_WORLD = {
    "amd": Text("`amd-smi metric`, `amd-smi static`", "`amd-smi metric` 和 `amd-smi static`"),
    "job": Text("the whole log of the job (with `--log`), `nvidia-smi -q`", "作业的完整日志（用 `--log`）、`nvidia-smi -q`"),
    "storage": Text("`df`, `mount`, `iostat -x`", "`df`、`mount` 和 `iostat -x`"),
    "intel": Text("`xpu-smi health -l`, `xpu-smi stats -j`", "`xpu-smi health -l` 和 `xpu-smi stats -j`"),
    "huawei": Text("`npu-smi info`", "`npu-smi info`"),
    "habana": Text("`hl-smi`", "`hl-smi`"),
    "moorethreads": Text("`mthreads-gmi -q`", "`mthreads-gmi -q`"),
    "nvidia": Text("`nvidia-smi -q`", "`nvidia-smi -q`"),
}  # fmt: skip


def world_of(text: str) -> str:
    """Whose world a text is of, as far as its words tell: a vendor, ``job`` or ``storage``; empty where they tell nothing."""
    return next((name for name, words in _WORLDS if words.search(text)), "")


def give_next(worlds: Iterable[str]) -> Text:
    """What to give beside inputs that nobody could read, in the world that they are of; NVIDIA's where they do not agree."""
    told = set(worlds) - {""}
    what = _OF_WORLD[told.pop() if len(told) == 1 else "nvidia"]
    return Text(f"Give {what.en} and {_LOG.en} as well.", f"请同时提供{what.zh}，以及{_LOG.zh}。")


def read_by_tool(facts: FactBase) -> bool:
    """Whether a captured short table of a vendor's tool, which has no column for errors, or its list of bad pages shows each GPU
    whose health nothing told."""
    wanted = {gpu(identifier, host) for identifier, host in _unjudged(facts)}
    read = {k.inner.subject for k in facts.observations if k.fact == _IN_SHORT_TABLE and k.inner.value is False}
    pages = [
        {k.inner.subject for k in facts.observations if k.fact == f and k.inner.status is Status.OK} for f in _BAD_PAGES
    ]
    return bool(wanted) and wanted <= read | set.intersection(*pages)


def not_judged(facts: FactBase) -> Text | None:
    """What the first line says when the health of some accelerators is not known; None when all were judged, or none is there."""
    if not (who := whose(facts)):
        return None
    makers = Counter(_vendor(facts, gpu(identifier, host)) for identifier, host in _unjudged(facts))
    why = _why(facts, makers)
    return Text(
        f"Cannot say: nothing wrong was seen, but nothing told the health of {who.en}{f' ({why})' if why else ''}.",
        f"无法判断：未发现问题，但没有读到 {who.zh}的健康状态{f'（{why}）' if why else ''}。",
    )


def whose(facts: FactBase) -> Text:
    """How many GPUs of whom are not judged; empty where all are."""
    makers = Counter(_vendor(facts, gpu(identifier, host)) for identifier, host in _unjudged(facts))
    return Text(_list(makers, "en"), _list(makers, "zh"))


def _unjudged(facts: FactBase) -> list[tuple[str, str]]:
    """Identifier and host of each GPU whose health nothing told."""
    found: list[tuple[str, str]] = []
    for k in facts.observations:
        o = k.inner
        if o.fact == "node.gpus.not_judged" and o.status is Status.OK and isinstance(o.value, tuple):
            found += [(identifier, o.subject.host) for identifier in o.value]
    return found


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
        words.append(
            f"{count} GPU{'s' if count > 1 else ''} of {label}"
            if lang == "en"
            else f"{count} 个{' ' * label.isascii()}{label} GPU "
        )
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
