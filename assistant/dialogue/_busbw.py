"""What an all-reduce over the GPUs of one node reaches, by its model, and what it means to be far below that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.ranges import ranges

# So many times below what NVLink gives it is not NVLink: a node that lost links, or whose rings work without the switch's
# arithmetic, keeps more than half; PCIe (35 to 45 GB/s in the table) is a tenth of an H100's and a fifth of an A100's.
_FAR = 4.0
_NODES = lazy(
    r"(?<![a-z])(?:(?:[2-9]|[1-9][0-9]+|two|three|four|multi)[ -]?nodes?|across|between nodes)|[2-9二两三四]\s*(?:个节点|台|机)|多机|跨机|跨节点",
    re.IGNORECASE,
)
_EIGHT = lazy(
    r"(?<![0-9a-z.])(?:8|eight)\s*(?:x\s*|×\s*)?(?:gpus?|cards?|nvidia|[abh][0-9]{3})|(?<![0-9])[8八]\s*(?:卡|张|块)|dgx|hgx",
    re.IGNORECASE,
)
_MODEL = lazy(r"(?<![a-z])(?:[0-9]\s?x\s?)?([abh][0-9]{3})s?(?![0-9])", re.IGNORECASE)
_PCIE = lazy(r"(?<![a-z])pcie(?![a-z])|(?<![a-z])nvl(?![a-z])", re.IGNORECASE)
_ROW = lazy(r"8x ([A-Z][0-9]{3}) SXM, one node")


class Usual(NamedTuple):
    """A row of the table of measures: eight GPUs of one model in one node."""

    model: str
    low: float  # GB/s
    shown: str  # as the table has it


def usual(text: str) -> Usual | None:
    """What eight GPUs of the model that a sentence names reach within one node; None where it names another set, or none."""
    if _NODES.search(text) or _PCIE.search(text) or not _EIGHT.search(text):
        return None
    named = {m[1].upper() for m in _MODEL.finditer(text)}
    return next((row for row in _rows() if named == {row.model}), None)


def _rows() -> Iterator[Usual]:
    for case, shown in ranges()["all-reduce-bandwidth"].rows:
        if (row := _ROW.fullmatch(case)) is not None:
            yield Usual(row[1], float(re.split("[-–]", shown)[0]), shown)


def unused(text: str, value: float) -> Text | None:
    """That so many GB/s over the eight GPUs of a node are not NVLink's; None where they may be, or nobody knows the set."""
    return _far(usual(text), value)


def below(model: str, value: float) -> Text | None:
    """The same of eight GPUs of a model in one node."""
    return _far(next((u for u in _rows() if u.model == model), None), value)


def _far(row: Usual | None, value: float) -> Text | None:
    if row is None or value <= 0 or value * _FAR > row.low:
        return None
    part = round(row.low / value)
    return Text(
        f"8x {row.model} on one node reach {row.shown}, so this is about 1/{part} of that: NVLink is not used, and the traffic goes over PCIe, host memory or the network. Links that are down, the fabric manager, NCCL_P2P_DISABLE or the image do that; NCCL_DEBUG=INFO names the path.",
        f"单节点 8x {row.model} 可达 {row.shown}，目前约为其 1/{part}：没有用上 NVLink，流量走了 PCIe、主机内存或网络。原因可能是链路断开、fabric manager、NCCL_P2P_DISABLE 或镜像；NCCL_DEBUG=INFO 会说明通路。",
    )
