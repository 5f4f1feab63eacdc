"""Error codes of CUDA's runtime and driver, of cuBLAS and cuDNN: what each one means and whether it can be hardware.

Numbers, names and messages are NVIDIA's (checked against two toolkits); meanings are ours. An
error surfaces at a later call than its cause: see `ASYNCHRONOUS`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from typing import Any

from knowledge.language import Text
from knowledge.record import dataclass


class Api(StrEnum):
    """Whose code it is."""

    CUDA = "cuda"  # runtime; the driver uses the same number
    DRIVER = "cuda_driver"  # codes that only the driver has
    CUBLAS = "cublas"
    CUDNN = "cudnn"


class Sticky(StrEnum):
    """Whether the context answers every later call with the same error, until the process is restarted."""

    YES = "yes"  # CUDA's headers say so
    IN_PRACTICE = "in_practice"  # observed, the headers do not say it
    NO = "no"


class Hardware(StrEnum):
    """Whether the device can be at fault."""

    YES = "yes"
    POSSIBLE = "possible"  # the kernel log of the node decides
    NO = "no"


ASYNCHRONOUS = Text(
    "Kernels run behind the program: the error appears at a later call, so the line of the traceback is not the cause. "
    "Run with CUDA_LAUNCH_BLOCKING=1 to see the true one.",
    "kernel 与程序异步执行：错误在之后的调用才出现，traceback 所指的行并非原因。用 CUDA_LAUNCH_BLOCKING=1 运行可看到真正位置。",
)
_DEVICE = Text(
    "Look at the kernel log of the node for XIDs at that time, and at the ECC and link counters of the GPU.",
    "查看该节点内核日志当时的 XID，以及该 GPU 的 ECC 与链路计数。",
)
_PLAIN = Text(
    "The call named in the traceback and what was passed to it.",
    "检查 traceback 中的调用及其参数。",
)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A source that says otherwise."""

    source: str
    says: Text

    @classmethod
    def all_of(cls, data: Mapping[str, Any]) -> tuple[Disagreement, ...]:
        """Those of an entry."""
        return tuple(cls(d["source"], Text.of(d["says"])) for d in data.get("disagrees", ()))


@dataclass(frozen=True, slots=True)
class CudaStatus:
    """One status code."""

    name: str  # cudaErrorLaunchFailure
    api: Api
    code: int
    driver_name: str  # CUDA_ERROR_LAUNCH_FAILED; empty when the driver has none
    messages: tuple[str, ...]  # what is printed for it, the present wording first
    title: Text
    cause: Text
    sticky: Sticky
    hardware: Hardware
    bucket: str  # a word of data/buckets.yaml
    since: str = ""  # toolkit that brought it; empty: CUDA 12 or before (cuDNN: 9)
    sources: tuple[str, ...] = ()
    disagrees: tuple[Disagreement, ...] = ()

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> CudaStatus:
        """From checked YAML."""
        return cls(
            name=data["name"], api=Api(data["api"]), code=data["code"], driver_name=data.get("driver_name", ""),
            messages=tuple(data.get("messages", ())), title=Text.of(data["title"]), cause=Text.of(data["cause"]),
            sticky=Sticky(data["sticky"]), hardware=Hardware(data["hardware"]), bucket=data["bucket"],
            since=data.get("since", ""), sources=tuple(data["sources"]), disagrees=Disagreement.all_of(data),
        )  # fmt: skip

    @property
    def id(self) -> str:
        """``cuda-719``, ``cublas-13``: unique over all libraries."""
        return f"{self.api}-{self.code}".replace("_", "-")

    @property
    def corrupts_context(self) -> bool:
        """True when only a new process helps."""
        return self.sticky is not Sticky.NO

    @property
    def check(self) -> Text:
        """What to look at next."""
        parts = [_DEVICE] if self.hardware is not Hardware.NO else []
        if self.corrupts_context:
            parts.append(ASYNCHRONOUS)
        parts = parts or [_PLAIN]
        return Text(" ".join(p.en for p in parts), "".join(p.zh for p in parts))

    def patterns(self) -> Iterator[str]:
        """RE2 patterns (without regard to case) for the ways in which programs print the code."""
        yield from (rf"\b{name}\b" for name in (self.name, self.driver_name) if name)
        if self.api not in (Api.CUDA, Api.DRIVER) or self.code == 0:
            return
        # Cuda failure 719 | CUDA error 719 | CUDA driver error: 719 | cuda error code=719
        yield rf"\b(?:cuda|hip)(?: (?:driver|runtime|api))* (?:error|failure)(?: code)?[ :=(#]*{self.code}\b"
        for message in self.messages:
            # Short messages ("invalid argument") are anybody's: CUDA must be named before them on the line.
            named = "" if len(message) >= 25 else r"\b(?:cuda|hip|error \d+:).*"
            yield f"{named}({re.escape(message)})"  # the group tells the message's own place


@cache
def _by_key() -> Mapping[tuple[Api, int], CudaStatus]:
    from knowledge.compiled import shard

    entries = (CudaStatus.from_plain(data) for data in shard("cuda"))
    return {(e.api, e.code): e for e in entries}


@cache
def _by_name() -> Mapping[str, CudaStatus]:
    return {name.lower(): e for e in _by_key().values() for name in (e.name, e.driver_name) if name}


def all_statuses(api: Api | None = None) -> tuple[CudaStatus, ...]:
    """Every status code, or those of one library, by number."""
    return tuple(e for (of, _), e in sorted(_by_key().items()) if api is None or of is api)


def status(code: int, api: Api = Api.CUDA) -> CudaStatus | None:
    """The entry of a number; codes that only the driver has answer for `Api.CUDA` too."""
    found = _by_key().get((api, code))
    return found or (_by_key().get((Api.DRIVER, code)) if api is Api.CUDA else None)


def find(word: str) -> CudaStatus | None:
    """The entry of what a person writes: ``719``, ``cudaErrorLaunchFailure``, ``CUDA_ERROR_LAUNCH_FAILED``,
    ``CUBLAS_STATUS_ALLOC_FAILED``. None when it names no entry.
    """
    word = word.strip()
    if re.fullmatch(r"[0-9]{1,6}", word):
        return status(int(word))
    return _by_name().get(word.lower())
