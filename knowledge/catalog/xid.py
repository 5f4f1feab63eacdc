"""NVIDIA's XID catalogue: what each code is, what NVIDIA says to do, what it leads to.

Codes, names, actions and applicability are NVIDIA's facts (Xid catalogue, revision 2025-09-30, and
the driver's ``nverror.h``); titles, descriptions and relations are ours. An action that NVIDIA
leaves blank stays blank here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any

from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.record import dataclass


class Immediate(StrEnum):
    """NVIDIA's immediate action: what brings the system back into service (sheet Xids)."""

    BLANK = ""
    IGNORE = "IGNORE"
    RESTART_APP = "RESTART_APP"
    RESTART_VM = "RESTART_VM"
    RESET_GPU = "RESET_GPU"
    RESTART_BM = "RESTART_BM"
    CHECK_MECHANICALS = "CHECK_MECHANICALS"
    CHECK_UVM = "CHECK_UVM"
    UPDATE_SWFW = "UPDATE_SWFW"
    CONTACT_SUPPORT = "CONTACT_SUPPORT"
    WORKFLOW_XID_45 = "WORKFLOW_XID_45"
    WORKFLOW_XID_48 = "WORKFLOW_XID_48"
    WORKFLOW_NVLINK_ERR = "WORKFLOW_NVLINK_ERR"
    WORKFLOW_NVLINK5_ERR = "WORKFLOW_NVLINK5_ERR"
    XID_154 = "XID_154"


class Investigate(StrEnum):
    """NVIDIA's investigatory action: what finds the cause (sheet Xids), in the sheet's own words."""

    BLANK = ""
    IGNORE = "IGNORE"
    SYMPATHETIC = "IGNORE (sympathetic)"
    SYMPATHETIC_REPORT_SOLO = "SYMPATHETIC_REPORT_SOLO"
    INFORMATIONAL = "N/A Informational only regarding another Xid"
    SOLO_RESTART_FM = "Solo: RESTART_FM Not Solo: IGNORE (follow other Xid)"
    CHECK_APP = "CHECK_APP/CUDA"
    INVESTIGATE_SW = "INVESTIGATE_SW"
    INVESTIGATE_SW_USER = "INVESTIGATE_SW_USER"
    INVESTIGATE_LINK_SI = "INVESTIGATE_LINK_SI"
    UPDATE_SWFW = "UPDATE_SWFW"
    CONTACT_SUPPORT = "CONTACT_SUPPORT"
    WORKFLOW_XID_13 = "WORKFLOW_XID_13"
    WORKFLOW_XID_31 = "WORKFLOW_XID_31"
    WORKFLOW_XID_48 = "WORKFLOW_XID_48"
    XID_137_FLOW = "XID_137_FLOW"
    WORKFLOW_NVLINK5_ERR = "WORKFLOW_NVLINK5_ERR"


class Severity(StrEnum):
    """How bad the event is; derived from NVIDIA's action, since the catalogue has no such column."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class Area(StrEnum):
    """What the event is about."""

    APPLICATION = "application"
    GPU = "gpu"
    LINK = "link"
    NODE = "node"
    FABRIC = "fabric"
    FIRMWARE = "firmware"


class XidRole(StrEnum):
    """Whether the event can be a cause."""

    ROOT = "root"
    SECONDARY = "secondary"  # fallout of something else
    COMPANION = "companion"  # adds detail to another code
    CARRIER = "carrier"  # carries the driver's advice about another code


class Applies(StrEnum):
    """Whether a code exists on a product; unknown where NVIDIA's table has no column for it."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A public source that says otherwise."""

    source: str
    says: Text


@dataclass(frozen=True, slots=True)
class XidEntry:
    """One code of the catalogue."""

    code: int
    mnemonic: str  # name in NVIDIA's catalogue
    driver_name: str  # name in the driver's header; empty when the header lacks it
    title: Text
    description: Text
    immediate: Immediate
    investigate: Investigate
    applies: Mapping[str, Applies]  # a100, h100, b100, gb200
    severity: Severity
    scope: Area
    role: XidRole
    explains: tuple[int, ...] = ()
    explained_by: tuple[int, ...] = ()
    companion_of: int | None = None
    decode: str = ""  # how the message body is read; empty when it holds nothing to read
    recovery_since: str = ""  # driver branch from which XID 154 accompanies the code
    causes: tuple[str, ...] = ()  # NVIDIA's r555 table, for Volta and older
    workflow: tuple[Text, ...] = ()
    confirm: tuple[Text, ...] = ()
    sources: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> XidEntry:
        """From checked YAML."""
        return cls(
            code=data["code"], mnemonic=data["mnemonic"], driver_name=data.get("driver_name", ""),
            title=Text.of(data["title"]), description=Text.of(data["description"]),
            immediate=Immediate(data.get("immediate", "")), investigate=Investigate(data.get("investigate", "")),
            applies={name: Applies(word) for name, word in data["applies"].items()},
            severity=Severity(data["severity"]), scope=Area(data["scope"]), role=XidRole(data["role"]),
            explains=tuple(data.get("explains", ())), explained_by=tuple(data.get("explained_by", ())),
            companion_of=data.get("companion_of"), decode=data.get("decode", ""),
            recovery_since=data.get("recovery_since", ""), causes=tuple(data.get("causes", ())),
            workflow=tuple(map(Text.of, data.get("workflow", ()))),
            confirm=tuple(map(Text.of, data.get("confirm", ()))), sources=tuple(data["sources"]),
            conflicts=tuple(Conflict(c["source"], Text.of(c["says"])) for c in data.get("conflicts", ())),
        )  # fmt: skip

    def applies_to(self, product: str) -> Applies:
        """Whether the code exists on `product` (see `product_column`)."""
        columns = _columns(product)
        answers = {self.applies.get(column, Applies.UNKNOWN) for column in columns}
        return answers.pop() if len(answers) == 1 else Applies.UNKNOWN


@cache
def _plain() -> Mapping[int, Mapping[str, Any]]:
    from knowledge.compiled import shard

    return {data["code"]: data for data in shard("xid")}


@cache
def xid(code: int) -> XidEntry | None:
    """The entry of `code`, or None for a code that the catalogue does not hold."""
    data = _plain().get(code)
    return XidEntry.from_plain(data) if data else None


def all_xids() -> tuple[XidEntry, ...]:
    """Every entry, by code."""
    return tuple(entry for code in sorted(_plain()) if (entry := xid(code)))


# NVIDIA's table has four columns. A product stands in the column of the chip that it carries; the
# variants of one chip (H200 and H20 are GH100 as H100 is) share its column.
_CHIPS: Mapping[str, tuple[str, ...]] = {
    "a100": ("a100", "a800", "a30", "ga100"),
    "h100": ("h100", "h200", "h800", "h20", "gh100", "gh200", "hopper"),
    "b100": ("b100", "b200", "b300", "gb100"),
    "gb200": ("gb200", "gb300"),
}
# A generation names more than one chip: only an answer on which all its columns agree counts.
_GENERATIONS: Mapping[str, tuple[str, ...]] = {"blackwell": ("b100", "gb200")}
_OTHER = frozenset({"rtx", "geforce", "quadro", "titan", "tesla", "jetson", "thor", "gb10"})
_TOKEN = lazy(r"[a-z]+[0-9]*|[0-9]+")


def _columns(product: str) -> tuple[str, ...]:
    tokens = set(_TOKEN.findall(product.lower()))
    for column, names in _CHIPS.items():
        if tokens & set(names):
            return (column,)
    if tokens & _OTHER:
        return ()
    return next((columns for word, columns in _GENERATIONS.items() if word in tokens), ())


def product_column(product: str) -> str:
    """The column of NVIDIA's table for a product name or architecture word; empty when it has none.

    ``"NVIDIA H200"`` and ``"hopper"`` give ``h100``; an L40S, a T4 or a GeForce gives nothing,
    since the table says nothing about them; ``"blackwell"`` alone names two columns and gives nothing.
    """
    columns = _columns(product)
    return columns[0] if len(columns) == 1 else ""


def applicability(code: int, product: str) -> Applies:
    """Whether XID `code` exists on `product`; unknown for codes and products that NVIDIA's table lacks."""
    entry = xid(code)
    return entry.applies_to(product) if entry else Applies.UNKNOWN
