"""What an incident cost in GPU-hours, counted from its events alone.

A GPU counts from the first measured event of the root findings about it until somebody said `mitigated` or `closed`; from a later
`open` or `working` on it counts again. Without a measured UTC time it counts from when the finding was written down, and the sum is
a least. While nobody said that it is over it counts until the newest event. No clock is read and nothing is assumed of a node:
GPUs that findings name are one sum; all GPUs of those nodes, where their number was recorded, are another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, TypeGuard

from assistant.incidents.events import Event, Kind, Status
from assistant.incidents.fold import Incident, Linked
from assistant.incidents.shape import gpu_of
from knowledge.errors import UsageError
from knowledge.record import dataclass

HOUR = 3600 * 10**9  # ns
MANY = 4096  # GPUs of one node that may be meant
LATEST = 2**62  # ns UTC, in the year 2116: no clock tells more
_STOPS, _RUNS = (Status.MITIGATED, Status.CLOSED), (Status.OPEN, Status.WORKING)


@dataclass(frozen=True, slots=True)
class Price:
    """What one GPU-hour costs."""

    amount: Decimal
    currency: str

    def of(self, ns: int) -> str:
        """The money for so many GPU-nanoseconds, with two digits behind the point."""
        return f"{_rounded(self.amount * ns / HOUR):,} {self.currency}"


@dataclass(frozen=True, slots=True)
class Row:
    """One GPU, or all GPUs of a node (`gpu` empty)."""

    host: str
    gpu: str
    gpus: int | None  # how many; None: not recorded
    since: int  # ns UTC
    measured: bool  # whether `since` is the time of an event; else when the finding was written down
    until: int | None  # ns UTC, the last time at which it was over; None: not yet
    ns: int | None  # all stretches together; None: the recorded times contradict each other

    @property
    def gpu_ns(self) -> int | None:
        """GPUs times time; None when one of them is not known."""
        return None if self.gpus is None or self.ns is None else self.gpus * self.ns


@dataclass(frozen=True, slots=True)
class Sum:
    """Rows together. `beyond`: whether there are causes that none of them stands for."""

    rows: tuple[Row, ...]
    beyond: bool = False

    @property
    def gpus(self) -> int:
        """GPUs of the rows that count."""
        return sum(r.gpus or 0 for r in self.rows if r.gpu_ns is not None)

    @property
    def gpu_ns(self) -> int | None:
        """GPU-nanoseconds; None when no row has a figure."""
        told = [r.gpu_ns for r in self.rows if r.gpu_ns is not None]
        return sum(told) if told else None

    @property
    def least(self) -> bool:
        """Whether it may be more: a start was not measured, it goes on, a row has no figure, a cause stands in none."""
        return self.beyond or any(not r.measured or r.until is None or r.gpu_ns is None for r in self.rows)


@dataclass(frozen=True, slots=True)
class Impact:
    """GPUs that root findings name, and all GPUs of the nodes that they are on."""

    named: Sum
    nodes: Sum


def impact(incident: Incident) -> Impact:
    """Rows in the order of nodes and GPUs, whoever wrote first."""
    roots = [f for f in incident.findings if f.role == "root" and f.severity != "info"]
    told = _told(incident, roots)
    boards: dict[tuple[str, str], list[Linked]] = {}
    places: dict[str, list[Linked]] = {}
    for f in roots:
        if gpu := _board(f):
            boards.setdefault((f.host, gpu), []).append(f)
        if f.host:
            places.setdefault(f.host, []).append(f)
    counts = counted(incident.events)
    turns = tuple(e for e in incident.events if _says(e, (*_STOPS, *_RUNS)))
    named = [
        _row(incident, turns, [told[f.host, f.key] for f in of], host, _shown(of), 1)
        for (host, _), of in boards.items()
    ]
    nodes = [
        _row(incident, turns, [told[f.host, f.key] for f in of], host, "", counts.get(host))
        for host, of in places.items()
    ]
    beyond = any(not gpu_of(f.subject) for f in roots), any(not f.host for f in roots)
    ordered = (tuple(sorted(rows, key=lambda r: (r.host, r.gpu))) for rows in (named, nodes))
    return Impact(*(Sum(rows, more) for rows, more in zip(ordered, beyond, strict=True)))


def _board(f: Linked) -> str:
    """One name for one board: its UUID where it was read."""
    parts = f.data.get("parts")
    uuid = parts.get("uuid") if isinstance(parts, dict) else None
    address = gpu_of(f.subject)
    return uuid if address and isinstance(uuid, str) and uuid else address


def _shown(findings: Sequence[Linked]) -> str:
    return min(gpu_of(f.subject) for f in findings)


def counted(events: Iterable[Event]) -> dict[str, int]:
    """How many GPUs were seen of each node, as the events tell; the last word counts."""
    out: dict[str, int] = {}
    for e in events:
        told = e.data.get("gpus")
        if isinstance(told, dict):
            out |= {host: n for host, n in told.items() if isinstance(host, str) and whole(n) and 0 < n <= MANY}
    return out


def whole(value: Any) -> TypeGuard[int]:
    """Whether a recorded value is a whole number; JSON's true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


# --- when ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _First:
    """When a finding was first measured (None: no UTC time of it is known), and when it was first written down."""

    measured: int | None
    written: Event


def _told(incident: Incident, roots: Sequence[Linked]) -> Mapping[tuple[str, str], _First]:
    wanted = {(f.host, f.key) for f in roots}
    out: dict[tuple[str, str], _First] = {}
    for e in incident.events:
        key = (e.text("host"), e.text("key"))
        if e.kind != Kind.FINDING or key not in wanted:
            continue
        times = [t for t in (measured(e.data), out[key].measured if key in out else None) if t is not None]
        out[key] = _First(min(times, default=None), out[key].written if key in out else e)
    return out


def measured(data: Mapping[str, object]) -> int | None:
    """The first time of a finding (ns UTC); None when its clock is another one."""
    first = data.get("first")
    return first if whole(first) and 0 < first < LATEST and data.get("clock") == "realtime" else None


def _row(
    incident: Incident, turns: Sequence[Event], firsts: Sequence[_First], host: str, gpu: str, n: int | None
) -> Row:
    times = [x.measured for x in firsts if x.measured is not None]
    written = min((x.written for x in firsts), key=lambda e: e.seq)
    since = min(times, default=written.at)
    ns, until = _stretches([e for e in turns if e.seq > written.seq], since, incident.changed_at)
    return Row(host, gpu, n, since, bool(times), until, ns)


def _stretches(turns: Sequence[Event], since: int, newest: int) -> tuple[int | None, int | None]:
    """How long it went on in all, and when it was over (None: it goes on, and is counted to `newest`)."""
    total, begun, over = 0, since, None
    for e in turns:
        if _says(e, _STOPS) and over is None:
            if e.at < begun:
                return None, e.at
            total, over = total + e.at - begun, e.at
        elif _says(e, _RUNS) and over is not None:
            begun, over = max(e.at, over), None
    return (total + max(0, newest - begun), None) if over is None else (total, over)


def _says(e: Event, words: Sequence[Status]) -> bool:
    if e.kind == Kind.CLOSED:
        return Status.CLOSED in words
    return e.kind == Kind.STATUS and e.text("status") in words


# --- figures ------------------------------------------------------------------------------


def hours(ns: int) -> str:
    """GPU-hours with two digits behind the point: ``5.20``."""
    return f"{_rounded(Decimal(ns) / HOUR):,}"


def _rounded(value: Decimal) -> Decimal:
    return value.quantize(Decimal("0.01"), ROUND_HALF_UP)


def price_of(amount: str, currency: str) -> Price:
    """A price as it was typed: ``2.10 EUR``. UsageError for one that is none."""
    try:
        value = Decimal(amount)
    except ArithmeticError:
        value = Decimal(-1)
    if not (value.is_finite() and 0 <= value <= 10**6):
        raise UsageError(
            f"{amount!r} is no price of a GPU-hour",
            hint="a number from 0 to 1000000, such as: --price 2.10 EUR",
            zh=f"{amount!r} 不是 GPU 小时单价",
            hint_zh="0 到 1000000 的数字，例如：--price 2.10 EUR",
        )
    if not (
        0 < len(currency) <= 8 and currency.isprintable() and not any(c.isdigit() or c.isspace() for c in currency)
    ):
        raise UsageError(
            f"{currency!r} is no currency", hint="at most 8 letters, such as: --price 2.10 EUR",
            zh=f"{currency!r} 不是货币", hint_zh="至多 8 个字母，例如：--price 2.10 EUR",
        )  # fmt: skip
    return Price(value, currency)


def set_price(text: str) -> Price | None:
    """The setting ``gpu_hour_price``: ``2.10 EUR``; None when it is empty. UsageError for one that is none."""
    words = text.split()
    if not words:
        return None
    if len(words) != 2:
        raise UsageError(
            f"gpu_hour_price is {text!r}, which is no price", hint="amount and currency, such as: 2.10 EUR"
        )
    return price_of(words[0], words[1])
