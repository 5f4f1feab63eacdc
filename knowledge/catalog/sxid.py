"""NVSwitch errors (SXid): what each code is, how bad it is, what follows from that.

Names and texts are the driver's (open-gpu-kernel-modules 595.45.04); classes and recovery come from
the Fabric Manager User Guide DU-09883-001 v1.3, appendix D. Many errors are fatal or not by
configuration: the word of the line decides, the catalogue only where a line has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any

from knowledge.catalog.xid import Conflict, Severity
from knowledge.language import Text
from knowledge.record import dataclass


class Unit(StrEnum):
    """The part of the switch that reports."""

    HOST = "host"
    INGRESS = "ingress"
    EGRESS = "egress"
    FLOW_STATE = "flow_state"
    TAG_STATE = "tag_state"
    MC_TAG_STATE = "mc_tag_state"
    RED_TAG_STATE = "red_tag_state"
    ROUTE = "route"
    SOURCETRACK = "sourcetrack"
    SWITCH = "switch"
    NVLCTRL = "nvlctrl"
    NVLIPT = "nvlipt"
    NVLTLC = "nvltlc"
    DLPL = "dlpl"
    AFS = "afs"
    MINION = "minion"
    NXBAR = "nxbar"
    SOE = "soe"
    CCI = "cci"


class GuideSeverity(StrEnum):
    """The Fabric Manager guide's class."""

    BLANK = ""
    NON_FATAL = "non_fatal"
    FATAL = "fatal"  # to the port
    ALWAYS_FATAL = "always_fatal"  # to the whole fabric


class DriverSeverity(StrEnum):
    """The driver's report macro."""

    NON_FATAL = "non_fatal"
    FATAL = "fatal"
    CONTAIN = "contain"  # fatal when containment is on


class Recovery(StrEnum):
    """What the guide asks for."""

    BLANK = ""
    NONE = "none"
    RESTART_VM = "restart_vm"
    RESET_ALL = "reset_all"  # all GPUs and all NVSwitches
    CHECK_LINK = "check_link"
    COOLING = "cooling"


class Chip(StrEnum):
    """NVSwitch generations that the catalogue tells apart."""

    LR10 = "lr10"  # A100 class
    LS10 = "ls10"  # H100 class


@dataclass(frozen=True, slots=True)
class SxidEntry:
    """One code of the catalogue."""

    code: int
    mnemonic: str
    unit: Unit
    title: Text
    guide_name: str
    text: str  # the driver's format string
    severity_guide: GuideSeverity
    severity_driver: Mapping[Chip, tuple[DriverSeverity, ...]]
    device_fatal: bool
    always_fatal: bool
    recovery: Recovery
    conflicts: tuple[Conflict, ...]

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> SxidEntry:
        """From checked YAML."""
        driver = data.get("severity_driver", {})
        return cls(
            code=data["code"], mnemonic=data["mnemonic"], unit=Unit(data["unit"]), title=Text.of(data["title"]),
            guide_name=data.get("guide_name", ""), text=data.get("text", ""),
            severity_guide=GuideSeverity(data.get("severity_guide", "")),
            severity_driver={Chip(chip): tuple(map(DriverSeverity, words)) for chip, words in driver.items()},
            device_fatal=data.get("device_fatal", False), always_fatal=data.get("always_fatal", False),
            recovery=Recovery(data.get("recovery", "")),
            conflicts=tuple(Conflict(c["source"], Text.of(c["says"])) for c in data.get("conflicts", ())),
        )  # fmt: skip

    def fatal(self, word: str = "", chip: Chip | None = None) -> bool | None:
        """Whether the event is fatal: by the line's `word`, else by the catalogue; None when neither tells.

        Without a word, only what holds on the chip (or on all chips, when it is unknown) counts.
        """
        if (said := fatal_word(word)) is not None:
            return said
        if self.always_fatal:
            return True
        words = {w for c, found in self.severity_driver.items() if chip in (None, c) for w in found}
        if words == {DriverSeverity.FATAL}:
            return True
        return False if words == {DriverSeverity.NON_FATAL} else None


@cache
def _plain() -> Mapping[int, Mapping[str, Any]]:
    from knowledge.compiled import shard

    return {data["code"]: data for data in shard("sxid")}


@cache
def sxid(code: int) -> SxidEntry | None:
    """The entry of `code`, or None for a code that the catalogue does not hold."""
    data = _plain().get(code)
    return SxidEntry.from_plain(data) if data else None


def all_sxids() -> tuple[SxidEntry, ...]:
    """Every entry, by code."""
    return tuple(entry for code in sorted(_plain()) if (entry := sxid(code)))


def fatal_word(word: str) -> bool | None:
    """What the word of a line says: ``Fatal`` is True, ``Non-fatal`` and ``Nonfatal`` are False, others None."""
    letters = "".join(c for c in word.lower() if c.isalpha())
    return {"fatal": True, "nonfatal": False}.get(letters)


@dataclass(frozen=True, slots=True)
class SxidAdvice:
    """What to do about one SXid event."""

    bucket: str  # RESET_GPU, RESTART_VM, RESTART_BM, MONITOR; empty when code or severity is unknown
    severity: Severity | None
    text: Text
    source: str


_GUIDE = "Fabric Manager User Guide DU-09883-001 v1.3, appendix D"
_FATAL = Text(
    "Fatal: stop the jobs, then reset the GPUs of the fabric together with the NVSwitches. First look for a GPU that "
    "died on the port (XID 79, 74): then the SXid is its echo.",
    "致命：停止作业，然后将该互联的 GPU 与 NVSwitch 一起复位。先查看端口对应的 GPU 是否失效（XID 79、74）：若是，则该 SXid 只是其回声。",
)
_ALWAYS = Text(
    "Fatal to the whole fabric: stop everything on it, then restart the host (or reset all GPUs and all NVSwitches).",
    "对整个互联致命：停止其上所有作业，然后重启主机（或复位所有 GPU 和所有 NVSwitch）。",
)
_WATCH = Text("Not fatal: keep watching; act when it repeats or a fatal one follows.",
              "非致命：继续观察；若重复或随后出现致命错误再处理。")  # fmt: skip
_RECOVERY: Mapping[Recovery, Text] = {
    Recovery.RESTART_VM: Text(
        "Not fatal to the switch, yet the NVLink traffic of the GPU on this port can stall: find that GPU, and in a "
        "virtual machine restart the guest.",
        "对交换芯片非致命，但该端口所连 GPU 的 NVLink 流量可能停滞：找到该 GPU；在虚拟机中则重启来宾系统。",
    ),
    Recovery.RESET_ALL: Text(
        "Usually comes with a fatal SXid: follow that one; if work hangs, reset all GPUs and all NVSwitches.",
        "通常伴随致命 SXid：按其处理；若作业挂起，复位所有 GPU 和所有 NVSwitch。",
    ),
    Recovery.CHECK_LINK: Text(
        "A broken connection or an uncoordinated shutdown: if nobody shut anything down, check the link's connections.",
        "连接断开或未协调的关机：若并非人为关机，检查链路连接。",
    ),
    Recovery.COOLING: Text("Make sure that the cooling is sufficient.", "确认散热充足。"),
    Recovery.NONE: Text("Corrected by the hardware or harmless: nothing to do.", "已由硬件纠正或无害：无需处理。"),
}
_NOT_LISTED = Text("The catalogue does not hold this SXid; read its line.", "目录未收录该 SXid；请阅读原始行。")
_UNKNOWN = Text(
    "The line has no word Fatal or Non-fatal, and the catalogue does not decide: find the line with the word.",
    "该行没有 Fatal／Non-fatal，目录也无法判定：请找到带有该词的行。",
)


def advise(code: int, word: str = "", chip: Chip | None = None, virtual: bool = False) -> SxidAdvice:
    """NVIDIA's way out of an SXid.

    Fatal: A100-class switches (lr10) need a restart of the guest or, on bare metal, of the host;
    H100-class ones (ls10) a reset of GPU and switch, which also holds when the chip is unknown.
    Always fatal: the host. Not fatal: watch, with the guide's advice for the code. A code that the
    catalogue lacks, or a severity that nothing tells, gets no bucket.
    """
    entry = sxid(code)
    if entry is None:
        said = {True: Severity.CRITICAL, False: Severity.WARNING, None: None}[fatal_word(word)]
        return SxidAdvice("", said, _NOT_LISTED, "the word of the line")
    fatal = entry.fatal(word, chip)
    if fatal is None:
        return SxidAdvice("", None, _UNKNOWN, _GUIDE)
    if not fatal:
        severity = Severity.INFO if entry.recovery is Recovery.NONE else Severity.WARNING
        return SxidAdvice("MONITOR", severity, _RECOVERY.get(entry.recovery, _WATCH), _GUIDE)
    if entry.always_fatal:
        return SxidAdvice("RESTART_BM", Severity.CRITICAL, _ALWAYS, f"{_GUIDE}.6")
    if chip is Chip.LR10:
        return SxidAdvice("RESTART_VM" if virtual else "RESTART_BM", Severity.CRITICAL, _FATAL, f"{_GUIDE}.5")
    return SxidAdvice("RESET_GPU", Severity.CRITICAL, _FATAL, f"{_GUIDE}.5")
