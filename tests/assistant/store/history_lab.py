"""A small machine that is checked again and again: one GPU, its replay counter, its temperature, its kernel log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

from assistant import store
from assistant.changes import Changes
from assistant.diagnosis import Diagnosis, diagnose
from assistant.store import patience
from assistant.store.location import parse
from assistant.store.read import Reader, open_reader
from knowledge.language import Text
from knowledge.observation import Clock, Event, Observation, Source, Status, Subject, gpu, node
from rules.loader import RuleSet, load

T = TypeVar("T")
SECOND = 10**9
MINUTE = 60 * SECOND
DAY = 86_400 * SECOND
T0 = 1_790_000_000 * SECOND
HOST = "n1"
GPU = gpu("0000:3b:00.0", HOST)
NVML = Source("nvml", "nvmlDeviceGetFieldValues(0)")
LOG = Source("kernel-log", "dmesg")


@cache
def rules() -> RuleSet:
    return load()


def seen(
    fact: str, value: int | float | str | bool | None, at: int, subject: Subject = GPU, status: Status = Status.OK
) -> Observation:
    """A reading."""
    detail = "" if status is Status.OK else "ERROR_UNKNOWN"
    return Observation(
        fact,
        subject,
        value if status is Status.OK else None,
        status,
        NVML,
        at,
        Clock.REALTIME,
        excerpt=f"{fact} {value}",
        detail=detail,
    )


def log(at: int, since: int = T0 - DAY) -> Observation:
    """The kernel log was read, from `since` on."""
    return Observation("xid", node(HOST), None, Status.NONE_SEEN, LOG, at, Clock.REALTIME, window=(since, at))


def xid(code: int, at: int, line: int = 1) -> Observation:
    """A line of the kernel log."""
    text = f"NVRM: Xid (PCI:0000:3b:00): {code}, pid=1"
    source = Source("kernel-log", "dmesg", line)
    return Observation(
        "xid", GPU, Event(code, {"text": text}), source=source, at=at, clock=Clock.REALTIME, excerpt=f"[{at}] {text}"
    )


@dataclass
class Machine:
    """What one check sees of it."""

    replay: int = 0
    temperature: int = 40
    uuid: str = "GPU-aaaa"
    vbios: str = "96.00.01"
    boot: str = "boot-1"
    more: list[Observation] = field(default_factory=list)
    log_read: bool = True
    nvml_read: bool = True

    def observations(self, at: int) -> list[Observation]:
        out = [log(at), *self.more] if self.log_read else []
        if self.nvml_read:
            out += [
                seen("gpu.pcie.replay", self.replay, at),
                seen("gpu.pcie.gen.max", 4, at),
                seen("gpu.pcie.width.max", 16, at),
                seen("gpu.temperature.core", self.temperature, at),
                seen("gpu.uuid", self.uuid, at),
                seen("gpu.vbios", self.vbios, at),
            ]
        return out


def check(
    url: str, machine: Machine, at: int, *, keep: bool = True, origin: str = "live"
) -> tuple[Diagnosis, Changes | Text]:
    """One check as the command does it: earlier samples, diagnosis, what changed, and then it is kept."""
    now = machine.observations(at)
    before, why = earlier(url, now, at, machine.boot)
    assert why is None
    diagnosis = diagnose([*now, *before], rules(), as_of=at)
    changes = since_last(url, diagnosis, machine.boot)
    if keep:
        assert remember(url, diagnosis, machine.boot, origin) is None
    return diagnosis, changes


def answered(url: str, ask: Callable[[], T]) -> T:
    """What `ask` gives. A server on a machine with other work may miss its second: it is asked again, a few times."""
    for _ in range(9):
        found = ask()
        why = found[1] if isinstance(found, tuple) else found
        if not isinstance(why, str | Text) or "does not answer within" not in str(why):
            return found
        location = parse(url)
        patience.answered(location.url if location else url)
    return ask()


def earlier(url: str, now: Sequence[Observation], at: int, boot: str = "") -> tuple[Sequence[Observation], Text | None]:
    """What the history knows of before, and why not more."""
    return answered(url, lambda: store.earlier(url, HOST, now, rules().rules, as_of=at, boot_id=boot))


def since_last(url: str, diagnosis: Diagnosis, boot: str = "", good: bool = False) -> Changes | Text:
    """What changed since the last check, or the last good one."""
    return answered(url, lambda: store.since_last(url, diagnosis, HOST, boot_id=boot, good=good))


def remember(url: str, diagnosis: Diagnosis, boot: str = "boot-1", origin: str = "live", days: int = 30) -> str | None:
    """Keep a diagnosis."""
    with closing(store.Recorder(url, days=days, rules=rules().rules)) as recorder:
        return kept(url, recorder, diagnosis, boot, origin)


def kept(
    url: str, recorder: store.Recorder, diagnosis: Diagnosis, boot: str = "boot-1", origin: str = "live"
) -> str | None:
    """Keep a diagnosis with what has kept others before."""
    return answered(url, lambda: recorder.remember(HOST, diagnosis, (), origin, boot_id=boot))


def plain(observations: Iterable[Observation], at: int) -> Diagnosis:
    """A diagnosis without a history."""
    return diagnose(observations, rules(), as_of=at)


def reader(url: str) -> Reader:
    """The history, which must be there."""
    location = parse(url)
    assert location is not None
    found = open_reader(location)
    assert found is not None
    return found


def rule_ids(diagnosis: Diagnosis) -> list[str]:
    return [f.rule.id for f in diagnosis.findings]


def differing(changes: Changes | Text) -> Changes:
    """`changes`, which must not be a reason why there are none."""
    assert isinstance(changes, Changes), changes
    return changes


def values(reader_: Reader, fact: str, subject: Subject = GPU) -> Sequence[float]:
    return reader_.series(fact, subject).values
