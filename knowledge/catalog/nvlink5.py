"""XID 144-150: what IntrInfo and ErrorStatus of an NVLink5 line mean.

NVIDIA's sheet "Xid 144-150 Decode" lists masks of IntrInfo (one for drivers before R575, one from
R575 on) and values of ErrorStatus. A line is decoded only when a row matches both; nothing is ever
inferred from the words Fatal and Nonfatal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any

from knowledge.language import Text
from knowledge.record import dataclass

CODES = range(144, 151)
_FULL = 0xFFFFFFFF


class Layout(StrEnum):
    """Which driver generation laid out IntrInfo."""

    V1 = "v1"  # before R575: the unit stands in bits 9:5, the XID in bits 4:0
    V2 = "v2"  # from R575 on: the unit stands in bits 6:0


class Fatality(StrEnum):
    """NVIDIA's severity without its footnotes."""

    NONFATAL = "nonfatal"
    LINK = "link_fatal"  # the GPU should be drained, then reset
    GPU = "fatal"  # all links go down, all channels are killed


@dataclass(frozen=True, slots=True)
class Mask:
    """Bits of IntrInfo that must have certain values."""

    bits: int
    value: int

    @classmethod
    def of(cls, text: str) -> Mask:
        """From 32 characters, bit 31 first: 0 and 1 are fixed, ``-`` is free."""
        return cls(int(text.replace("0", "1").replace("-", "0"), 2), int(text.replace("-", "0"), 2))

    def fits(self, word: int) -> bool:
        """True when `word` has these bits."""
        return word & self.bits == self.value


@dataclass(frozen=True, slots=True)
class Row:
    """One row of NVIDIA's sheet."""

    id: str
    xid: int
    units: Mapping[Layout, str]
    masks: Mapping[Layout, Mask]
    status: tuple[int, ...]  # allowed ErrorStatus; empty: any
    action: str
    second: Mapping[Layout, Mask]  # with these bits `second_action` holds
    second_action: str
    investigate: str
    severity: str
    origin: str
    impact: str

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Row:
        """From checked YAML."""
        second = data.get("second")
        return cls(
            data["id"], data["xid"], {Layout.V1: data["unit_v1"], Layout.V2: data["unit_v2"]}, _masks(data),
            tuple(data.get("status", ())), data["action"], _masks(second) if second else {},
            second["action"] if second else "", data["investigate"], data["severity"], data["origin"], data["impact"],
        )  # fmt: skip

    def layout(self, word: int) -> Layout | None:
        """The layout under which `word` fits this row, or None. No word fits rows of different units."""
        for layout, mask in self.masks.items():
            second = self.second.get(layout)
            if mask.fits(word) or (second and second.fits(word)):
                return layout
        return None

    def named(self, unit: str) -> bool:
        """True when `unit`, as printed, is one of this row's names, or both of them with a slash between."""
        return {_plain(name) for name in unit.split("/")} <= {_plain(name) for name in self.units.values()}


@dataclass(frozen=True, slots=True)
class NvLink5Decode:
    """What one line means."""

    xid: int
    unit: str
    layout: Layout
    reason: int  # IntrInfo 25:20; a reason for XID 149 only, 0 for the others
    link: int | None  # link number that IntrInfo itself carries; None where it carries none
    action: str
    investigate: str
    severity: str  # NVIDIA's cell, footnote marks included
    fatality: Fatality
    promoted: bool  # the row's second mask matched
    impact: str
    row: str
    caveats: tuple[Text, ...] = ()


def _masks(data: Mapping[str, Any]) -> Mapping[Layout, Mask]:
    return {Layout.V1: Mask.of(data["mask_v1"]), Layout.V2: Mask.of(data["mask_v2"])}


def _plain(unit: str) -> str:
    return unit.strip().upper().replace(" ", "_")


@cache
def rows() -> tuple[Row, ...]:
    """NVIDIA's sheet."""
    from knowledge.compiled import shard

    return tuple(Row.from_plain(data) for data in shard("nvlink5"))


def decode_nvlink5(code: int, unit: str, intrinfo: int | None, error_status: int | None) -> NvLink5Decode | None:
    """The row of NVIDIA's sheet for one line, or None when the line cannot be decoded (see `why_not`).

    `unit` is the word that the line prints; it separates rows with equal masks and never
    overrules the numbers. A missing `error_status` is enough only for rows that allow any.
    """
    if intrinfo is None or not 0 <= intrinfo <= _FULL:
        return None
    found = [(row, layout) for row, layout in _with_unit(code, intrinfo) if _status_fits(row, error_status)]
    named = [item for item in found if item[0].named(unit)]
    chosen = named or found
    if not chosen or len({_verdict(row, layout, intrinfo) for row, layout in chosen}) > 1:
        return None
    row, layout = chosen[0]
    action, promoted = _action(row, layout, intrinfo)
    return NvLink5Decode(
        code, unit if row.named(unit) and "/" not in unit else row.units[layout], layout, intrinfo >> 20 & 0x3F,
        _link(layout, intrinfo), action, row.investigate, row.severity, _fatality(row, promoted), promoted,
        row.impact, row.id, _caveats(row, unit, intrinfo, promoted),
    )  # fmt: skip


def why_not(code: int, intrinfo: int | None, error_status: int | None) -> Text:
    """Why a line of XID 144-150 cannot be decoded."""
    if code not in CODES:
        return Text(f"XID {code} has no NVLink5 sub-code.", f"XID {code} 没有 NVLink5 子码。")
    if intrinfo is None:
        return Text("The line holds no IntrInfo word.", "该行没有 IntrInfo。")
    units = _with_unit(code, intrinfo)
    if not units:
        return Text(
            f"No row of NVIDIA's table fits XID {code} with IntrInfo 0x{intrinfo:08x}.",
            f"NVIDIA 解码表中没有符合 XID {code}、IntrInfo 0x{intrinfo:08x} 的行。",
        )
    name = units[0][0].units[units[0][1]]
    if error_status is None:
        return Text(f"The line holds no ErrorStatus, which {name} needs.", f"该行没有 {name} 所需的 ErrorStatus。")
    return Text(
        f"No row of NVIDIA's table for {name} has ErrorStatus 0x{error_status:08x}.",
        f"NVIDIA 解码表中 {name} 没有 ErrorStatus 为 0x{error_status:08x} 的行。",
    )


def _with_unit(code: int, intrinfo: int) -> list[tuple[Row, Layout]]:
    return [(row, layout) for row in rows() if row.xid == code and (layout := row.layout(intrinfo))]


def _status_fits(row: Row, status: int | None) -> bool:
    return not row.status or status in row.status


def _action(row: Row, layout: Layout, intrinfo: int) -> tuple[str, bool]:
    second = row.second.get(layout)
    if second is not None and second.fits(intrinfo):
        return row.second_action, True
    return row.action, False


def _verdict(row: Row, layout: Layout, intrinfo: int) -> tuple[str, str, str]:
    return _action(row, layout, intrinfo)[0], row.investigate, row.severity


def _link(layout: Layout, intrinfo: int) -> int | None:
    """IntrInfo 17:13 equals the printed link number in all public lines of drivers before R575; all ones is no link."""
    number = intrinfo >> 13 & 0x1F
    return number if layout is Layout.V1 and number != 0x1F else None


def _fatality(row: Row, promoted: bool) -> Fatality:
    if promoted or row.severity.startswith("Fatal"):
        return Fatality.GPU
    return Fatality.LINK if row.severity.startswith("Link") else Fatality.NONFATAL


_CAVEATS: Sequence[tuple[str, Text]] = (
    ("Link Fatal?", Text("NVIDIA's own table puts a question mark behind this severity.", "NVIDIA 的表格在该严重度后打了问号。")),
    ("Fatal**", Text("Usually fatal, not always: here the word Fatal or Nonfatal of the line counts.",
                     "通常致命但并非总是：此处以该行的 Fatal／Nonfatal 为准。")),
)  # fmt: skip


def _caveats(row: Row, unit: str, intrinfo: int, promoted: bool) -> tuple[Text, ...]:
    out = [text for severity, text in _CAVEATS if row.severity == severity]
    if row.second:
        out.append(
            Text("Promoted to fatal: the second mask of the row matches.", "已升级为致命：匹配该行的第二个掩码。")
            if promoted
            else Text("This error can be promoted to fatal; here it is not.", "该错误可升级为致命；此处未升级。")
        )
    if unit and not row.named(unit):
        out.append(
            Text(
                f"The line says {unit}, its IntrInfo says {'/'.join(sorted(set(row.units.values())))}.",
                f"该行写的是 {unit}，而 IntrInfo 表示 {'/'.join(sorted(set(row.units.values())))}。",
            )
        )
    if all(mask.fits(intrinfo) for mask in row.masks.values()):
        out.append(
            Text(
                "IntrInfo fits both layouts, so it does not tell the driver generation.",
                "IntrInfo 同时符合两种布局，无法据此判断驱动代次。",
            )
        )
    return tuple(out)
