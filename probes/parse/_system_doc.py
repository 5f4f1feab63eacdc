"""A snapshot of /proc and /sys as the collector `system` prints it: what each file said, twice where it counts.

Readings are looked up by path; what is lacking is a `Gap` with the status and the reason. A rate is
the growth of a counter over the time between its two readings: one that went backwards has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, TypeAlias

from knowledge.observation import Clock, Observation, Source, Status, Subject, Value, node
from knowledge.record import dataclass
from knowledge.text import clean, excerpt
from probes.base import Context
from probes.parse._json import loaded

NAME = "system"
REVISION = 1
SCHEMA = "gpudiag/system/1"
_LATEST = 4_102_444_800 * 10**9  # ns: the year 2100; a time beyond is none
_DIGITS = 20  # of the largest 64-bit counter
_ERRORS = {
    "EACCES": Status.DENIED, "EPERM": Status.DENIED, "ENOENT": Status.UNSUPPORTED, "ENOTDIR": Status.UNSUPPORTED,
    "EOPNOTSUPP": Status.UNSUPPORTED, "ENODEV": Status.UNSUPPORTED, "ENXIO": Status.UNSUPPORTED, "ETIMEDOUT": Status.TIMEOUT,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Gap:
    """Why there is no value."""

    status: Status
    why: str


@dataclass(frozen=True, slots=True)
class Reading:
    """One file, or one file of each of several folders, at one moment."""

    path: str
    text: str = ""
    each: Mapping[str, str] = field(default_factory=dict)  # by what stood for the star
    failed: Mapping[str, Gap] = field(default_factory=dict)  # those of `each` that could not be read
    plain: Mapping[str, Any] = field(default_factory=dict)  # everything else that was noted
    at: int | None = None  # ns since 1970
    mono: int | None = None  # ns of the monotonic clock

    def table(self) -> dict[str, str]:
        """``key value`` lines (vmstat, memory.events) by key."""
        return {k: v.strip() for k, _, v in (line.partition(" ") for line in self.text.splitlines()) if v}

    def line(self, start: str) -> str:
        """The first line that begins with `start`; empty without one."""
        return next((line for line in self.text.splitlines() if line.startswith(start)), "")


@dataclass(frozen=True, slots=True)
class Pair:
    """The same file twice, `seconds` apart."""

    before: Reading
    after: Reading
    seconds: float

    @property
    def window(self) -> tuple[int, int] | None:
        """From the first reading to the second, ns since 1970."""
        if self.before.at is None or self.after.at is None or self.after.at < self.before.at:
            return None
        return self.before.at, self.after.at


Number: TypeAlias = int | float


def whole(text: str | None) -> int | None:
    """`text` as a count of at most 64 bits; None when it is none."""
    text = (text or "").strip()
    return int(text) if 0 < len(text) <= _DIGITS and text.isascii() and text.isdigit() else None


def decimal(text: str | None) -> float | None:
    """`text` as a number with decimals and no sign; None when it is none."""
    head, _, tail = (text or "").strip().partition(".")
    if whole(head) is None or (tail and whole(tail) is None):
        return None
    return float(f"{head}.{tail or 0}")


def listed(text: str) -> tuple[int, ...] | None:
    """CPUs or nodes of a list such as ``0-3,8``; None when it is none. At most 65536 of them."""
    out: list[int] = []
    for part in text.strip().split(","):
        low, dash, high = part.partition("-")
        first, last = whole(low), whole(high if dash else low)
        if first is None or last is None or not first <= last or last - first >= 65536 - len(out):
            return () if not text.strip() else None
        out += range(first, last + 1)
    return tuple(out)


def growth(before: Number | None, after: Number | None, what: str) -> Number | Gap:
    """How much a counter has grown; a Gap when it went backwards or is not a number."""
    if before is None or after is None:
        return Gap(Status.FAILED, f"{what} is not a number in both readings")
    if after < before:
        return Gap(Status.FAILED, f"{what} went backwards: {before} -> {after} (it was reset or has wrapped)")
    return after - before


class Snapshot:
    """The document, by path. ValueError when it is none."""

    def __init__(self, text: str) -> None:
        try:
            data = loaded(text)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise ValueError(f"not a document of schema {SCHEMA}")
        self.host = data["host"] if isinstance(data.get("host"), str) else ""
        self.at = _time(data.get("at_ns"))
        self.hung = data["hung"] if isinstance(data.get("hung"), str) else ""
        self.page = _positive(data.get("page_bytes"), 4096)
        readings = data.get("readings")
        both = readings if isinstance(readings, list) else []
        self._static = _mapping(data.get("static"))
        self._first = _mapping(both[0]) if both else {}
        self._second = _mapping(both[1]) if len(both) > 1 else {}
        groups = _mapping(data.get("cgroups"))
        self.groups = {
            name: tuple(path for path in paths if isinstance(path, str))
            for name, paths in groups.items()
            if isinstance(paths, list)
        }

    def get(self, path: str) -> Reading | Gap:
        """The last reading of a file, or why there is none."""
        for table in (self._second, self._first, self._static):
            if path in table:
                return self._reading(path, table[path])
        if self.hung:
            return Gap(Status.TIMEOUT, f"{path} was not read: reading {clean(self.hung)} did not come back in time")
        return Gap(Status.NOT_ASKED, f"{path} is not in the snapshot")

    def text(self, path: str) -> str:
        """The last text of a file without the line end; empty when there is none."""
        seen = self.get(path)
        return seen.text.strip() if isinstance(seen, Reading) else ""

    def twice(self, path: str) -> Pair | Gap:
        """Both readings of a file, or why there are not two."""
        last = self.get(path)
        if isinstance(last, Gap):
            return last
        if path not in self._first or path not in self._second:
            why = f"; reading {clean(self.hung)} did not come back in time" if self.hung else ""
            return Gap(Status.TIMEOUT if self.hung else Status.FAILED, f"{path} was read only once{why}")
        first = self._reading(path, self._first[path])
        if isinstance(first, Gap):
            return first
        if first.mono is None or last.mono is None or last.mono <= first.mono:
            return Gap(Status.FAILED, f"no time passed between the two readings of {path}")
        return Pair(first, last, (last.mono - first.mono) / 1e9)

    def _reading(self, path: str, raw: Any) -> Reading | Gap:
        entry = {"text": raw} if isinstance(raw, str) else _mapping(raw)
        if isinstance(entry.get("error"), str):
            return gap_of(path, entry["error"])
        each = _mapping(entry.get("each"))
        texts = {key: value for key, value in each.items() if isinstance(value, str)}
        errors = {
            key: gap_of(path.replace("*", key), value["error"])
            for key, value in each.items()
            if isinstance(value, dict) and isinstance(value.get("error"), str)
        }
        text = entry.get("text")
        return Reading(path, text if isinstance(text, str) else "", texts, errors, entry,
                       _time(entry.get("at_ns")) or self.at, _time(entry.get("mono_ns")))  # fmt: skip


def gap_of(path: str, error: str) -> Gap:
    """The Gap of an error such as ``EACCES: Permission denied``."""
    status = _ERRORS.get(error.partition(":")[0], Status.FAILED)
    remedy = {
        Status.DENIED: "; needs root: run sudo gpudiag check",
        Status.UNSUPPORTED: "; this kernel or machine does not have it",
    }.get(status, "")
    if path == "/proc/pressure/irq" and status is Status.UNSUPPORTED:
        remedy = "; it came with kernel 6.1 (CONFIG_IRQ_TIME_ACCOUNTING)"
    elif path.startswith("/proc/pressure") and status is Status.UNSUPPORTED:
        remedy = "; this kernel does not measure pressure: boot with psi=1 (CONFIG_PSI)"
    return Gap(status, f"{clean(path)}: {excerpt(error, 200)}{remedy}")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _time(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LATEST else None


def _positive(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 30 else default


class Out:
    """Collects observations about the node, its adapters and its GPUs."""

    def __init__(self, snapshot: Snapshot, context: Context) -> None:
        self.snapshot = snapshot
        self.node = node(context.host or clean(snapshot.host))
        self.found: list[Observation] = []

    def value(
        self, fact: str, value: Value, seen: Reading | Pair, shown: str = "", *, subject: Subject | None = None
    ) -> None:
        """One value; of a Pair it is about the window between the readings."""
        last = seen.after if isinstance(seen, Pair) else seen
        if isinstance(value, float):
            value = round(value, 3)
        elif isinstance(value, str):
            value = excerpt(value, 300)
        self.found.append(
            Observation(
                fact, subject or self.node, value, Status.OK, Source(NAME, clean(last.path), None, REVISION), last.at,
                Clock.NONE if last.at is None else Clock.REALTIME, seen.window if isinstance(seen, Pair) else None, excerpt(shown),
            )
        )  # fmt: skip

    def gap(
        self, facts: Iterable[str], gap: Gap, path: str, *, subject: Subject | None = None, shown: str = ""
    ) -> None:
        """Facts that have no value, and why."""
        at = self.snapshot.at
        for fact in facts:
            self.found.append(
                Observation(
                    fact, subject or self.node, None, gap.status, Source(NAME, clean(path), None, REVISION), at,
                    Clock.NONE if at is None else Clock.REALTIME, None, excerpt(shown), excerpt(gap.why),
                )
            )  # fmt: skip

    def rate(
        self, fact: str, before: Number | None, after: Number | None, pair: Pair, what: str, *,
        times: float = 1.0, subject: Subject | None = None,
    ) -> None:  # fmt: skip
        """Growth of a counter per second; `times` converts its unit."""
        grown = growth(before, after, what)
        if isinstance(grown, Gap):
            self.gap((fact,), grown, pair.after.path, subject=subject)
        else:
            shown = f"{what}: {before} -> {after} in {pair.seconds:.3f} s"
            self.value(fact, grown * times / pair.seconds, pair, shown, subject=subject)
