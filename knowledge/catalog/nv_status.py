"""NV_STATUS: what the numbers mean with which NVIDIA's driver says why something failed.

They stand in brackets behind a failed check (``[NV_ERR_TIMEOUT] (0x00000065)``) and as the second of the three numbers of
``RmInitAdapter failed! (0x62:0x65:1860)``, whose first is the stage that failed and whose third is a line of source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from knowledge.compiled import shard
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.record import dataclass

SOURCE = "https://github.com/NVIDIA/open-gpu-kernel-modules/blob/main/src/common/sdk/nvidia/inc/nvstatuscodes.h"
_NAME = lazy(r"\bNV_ERR_[A-Z0-9_]{2,60}\b")
_NUMBER = lazy(r"(?:\(|\bstatus[ :=]{1,3}|\berror(?: code)?[ :=]{1,3}|\breturned )(0x[0-9a-fA-F]{1,8})\b")
_TRIPLE = lazy(r"\((0x[0-9a-fA-F]{1,8}):(0x[0-9a-fA-F]{1,8}):\d{1,8}\)")

# The stages of RmInitAdapter (osinit.c of the open kernel modules). 0x62 is the start of the firmware in some releases and its
# validation in others, where 0x63 is the start.
_STAGES: tuple[tuple[int, int, Text], ...] = (
    (0x10, 0x1F, Text("setting the driver up failed", "驱动准备阶段失败")),
    (0x20, 0x22, Text("the driver could not attach to the GPU", "驱动无法接管 GPU")),
    (0x23, 0x2F, Text("the GPU's engines did not start", "GPU 引擎未能启动")),
    (0x30, 0x3F, Text("the VBIOS did not run", "VBIOS 未能运行")),
    (0x40, 0x5F, Text("the driver's services did not start", "驱动内部服务未能启动")),
    (0x60, 0x61, Text("the GPU's firmware could not be loaded", "无法加载 GPU 固件")),
    (0x62, 0x6F, Text("the GPU's firmware (GSP) did not start", "GPU 固件（GSP）未能启动")),
)


@dataclass(frozen=True, slots=True)
class NvStatus:
    """One status."""

    code: int
    name: str
    title: Text
    grave: bool  # by itself a sign of a sick GPU, board or fabric


@dataclass(frozen=True, slots=True)
class InitFailure:
    """What the three numbers of a failed start say; a part that no table lists is missing."""

    stage: int
    said: Text  # of the stage
    status: NvStatus | None

    @property
    def reason(self) -> Text:
        """``the GPU's firmware (GSP) did not start: the call timed out``."""
        why = self.status.title if self.status is not None else Text("")
        return Text(
            ": ".join(x for x in (self.said.en, why.en) if x), "：".join(x for x in (self.said.zh, why.zh) if x)
        )


@cache
def _by_code() -> Mapping[int, NvStatus]:
    return {
        e["code"]: NvStatus(e["code"], e["name"], Text.of(e["title"]) if e.get("title") else _spelled(e["name"]), e.get("grave", False))
        for e in shard("nv_status")
    }  # fmt: skip


def _spelled(name: str) -> Text:
    words = name.removeprefix("NV_ERR_").replace("_", " ").lower()
    return Text(words, words)


def nv_status(code: int) -> NvStatus | None:
    """The status of that number; None of one that no table lists, and of success."""
    return _by_code().get(code)


def all_statuses() -> Sequence[NvStatus]:
    """Every status, by number."""
    return tuple(_by_code().values())


@cache
def _by_name() -> Mapping[str, NvStatus]:
    return {s.name: s for s in _by_code().values()}


def status_in(text: str) -> NvStatus | None:
    """The first status that a line of the driver names, by its name or else by its number."""
    for name in _NAME.finditer(text):
        if found := _by_name().get(name[0]):
            return found
    numbers = (nv_status(int(m[1], 16)) for m in _NUMBER.finditer(text))
    return next((s for s in numbers if s is not None), None)


def init_failure(text: str) -> InitFailure | None:
    """The reason that stands behind ``RmInitAdapter failed!``; None without the three numbers."""
    found = _TRIPLE.search(text)
    if not found:
        return None
    stage = int(found[1], 16)
    said = next((words for first, last, words in _STAGES if first <= stage <= last), Text(""))
    return InitFailure(stage, said, nv_status(int(found[2], 16)))
