"""What a decoder says beside its columns: counts, names of processes and threads; and what bounds it."""

from __future__ import annotations

from dataclasses import field
from typing import Final, NamedTuple

from knowledge.record import dataclass
from probes.trace.reading.lenient import Damaged, Unfinished, members
from probes.trace.reading.values import text_of

LABELS: Final = 256  # distinct categories that are counted apart
LONGEST_LABEL: Final = 4096  # bytes
TOO_MANY: Final = "(more distinct texts than are kept)"
TEXT_COST: Final = 128

METADATA: Final = 200_000  # processes and threads that are remembered


class Limits(NamedTuple):
    """What bounds the work and the memory on hostile text."""

    event: int = 16 << 20  # bytes; an event that is not closed by then never will be
    retries: int = 64  # how often an event that is not closed is searched for events within it
    texts: int = 256 << 20  # bytes that distinct strings may take, each with TEXT_COST on top


LIMITS: Final = Limits()


@dataclass(slots=True)
class Tally:
    """What was met beside the kept events."""

    events: int = 0
    flows: int = 0
    skipped: int = 0  # no JSON, or without a usable time
    ignored: dict[str, int] = field(default_factory=dict)  # events of groups that nobody asked for, by category
    texts_lost: int = 0  # values that read as TOO_MANY

    def ignore(self, label: bytes) -> None:
        """Counts an event of a group that nobody asked for, by its category as it stands in the text."""
        text = text_of(known(label))
        if len(label) > LONGEST_LABEL or (text not in self.ignored and len(self.ignored) >= LABELS):
            text = TOO_MANY
        self.ignored[text] = self.ignored.get(text, 0) + 1

    def add(self, other: Tally) -> None:
        """Takes the counts of a further list."""
        self.events += other.events
        self.flows += other.flows
        self.skipped += other.skipped
        self.texts_lost += other.texts_lost
        for label, count in other.ignored.items():
            self.ignored[label] = self.ignored.get(label, 0) + count


@dataclass(slots=True)
class Meta:
    """Metadata events: how processes and threads are called. Keys are the texts of pid and tid."""

    process: dict[str, dict[str, str]] = field(default_factory=dict)  # pid -> name, labels
    thread: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """Whether further events are ignored."""
        return len(self.process) + len(self.thread) >= METADATA

    def add(self, name: str, pid: str, tid: str, said: dict[str, str]) -> None:
        """Takes one metadata event: its name, and ``name`` and ``labels`` of its arguments."""
        if self.full:
            return
        if name == "thread_name" and "name" in said:
            self.thread[pid, tid] = said["name"]
        elif name in ("process_name", "process_labels"):
            self.process.setdefault(pid, {}).update(said)


def pairs(raw: bytes, keys: set[bytes]) -> dict[str, bytes]:
    """The values of `keys` in the text of an object; of a damaged one those in front of the damage."""
    found: dict[str, bytes] = {}
    if raw[:1] == b"{":
        try:
            for key, low, high in members(raw, 1, len(raw)):
                if key is not None and key in keys:
                    found[key.decode()] = raw[low:high]
        except (Damaged, Unfinished):
            pass
    return found


def take_metadata(meta: Meta, raw: bytes) -> None:
    """Takes the text of one metadata event, clean or not."""
    event = pairs(raw, {b"name", b"pid", b"tid", b"args"})
    said = pairs(event.get("args", b""), {b"name", b"labels"})
    name, pid, tid = (text_of(known(event.get(k, b""))) for k in ("name", "pid", "tid"))
    meta.add(name, pid, tid, {k: text_of(v) for k, v in said.items() if known(v)})


def known(raw: bytes) -> bytes:
    """The text of a value; empty for null."""
    return b"" if raw == b"null" else raw
