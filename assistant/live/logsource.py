"""Where the log of a source lies: a machine's kernel log, a recording's, or the files that were named.

A source has one log or several (journal, ring buffer, last words of a crash; one a file). Nothing is concluded here: the
lines and what the parsers see in them are handed on. `Tail` follows this machine's kernel log as it is written.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from assistant.live.loglines import LogLine, lines, written
from knowledge.errors import GpudiagError
from knowledge.language import NO_TEXT, Text
from knowledge.observation import Observation
from knowledge.record import dataclass

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.inventory.model import Hosts
    from assistant.live.logmarks import Judge
    from assistant.session.state import Origin
    from probes._scan_open import Reader
    from probes.host import Host
    from probes.kernel_text import KernelText

KEPT = 50_000  # lines of one log that are held, of a chatty node those of a week; events ahead of them are kept too
_HELD = 16 << 20  # bytes of them
_CHUNK = 1 << 20
HEAD = 1 << 16  # bytes that a format is recognised by (probes.base.DocumentFormat.sniff)
BURST = 0.1  # seconds that lines are gathered for: a kernel that dies writes hundreds at once
REPEATED = 500  # lines at the end of what was read among which a followed line may stand already
AHEAD = 64  # lines that are read again ahead of new ones: several may tell one thing together
Check = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Log:
    """One log of a source. Without data `why` says the reason."""

    title: str
    data: bytes = b""
    found: tuple[Observation, ...] = ()
    first: int = 1  # number of the first line in `data`
    why: Text = NO_TEXT
    kernel: KernelText | None = None

    def lines(self, judge: Judge, check: Check = lambda: None) -> Iterator[list[LogLine]]:
        """Its lines, oldest first, in batches. `check` is called between them."""
        spot = self.kernel.spot if self.kernel is not None else None
        return lines(self.data, self.found, judge, first=self.first, spot=spot, check=check)


def logs(
    origin: Origin, settings: Settings, check: Check = lambda: None, others: Hosts | None = None
) -> Iterator[Log]:  # fmt: skip
    """Every log of a source, the best first, read as they are asked for. What cannot be read says why.

    `others`: the machines that can be looked at beside this one; when left out those of the inventory file.
    """
    if origin.bundle:
        yield from _bundled(str(Path(origin.folder, origin.bundle)))
    elif origin.live and origin.host:
        yield from _there(origin.host, settings, others)
    elif origin.live:
        from probes.live_host import LiveHost

        with LiveHost(settings.machine.name, root=settings.machine.root) as host:
            yield from _of(host)
    else:
        named = [(p, True) for p in origin.logs] + [(p, False) for p in origin.inputs]
        for name, is_log in named:
            check()
            if (log := _file(name, str(Path(origin.folder, name)), is_log, check)) is not None:
                yield log


def _there(name: str, settings: Settings, others: Hosts | None) -> Iterator[Log]:
    """The logs of another machine, over a connection of their own."""
    from assistant import machine
    from assistant.inventory import load

    try:
        node = (load(settings) if others is None else others).find(name)
        with machine.line(settings, node.reach, machine.BUDGET) as far:
            yield from _of(far)
    except GpudiagError as error:
        yield Log(name, why=Text(error.message, error.message))


def _bundled(path: str) -> Iterator[Log]:
    from assistant.machine import opened

    try:
        host = opened(path).host
    except GpudiagError as error:
        yield Log(path, why=Text(str(error), str(error)))
        return
    yield from _of(host)


def _of(host: Host) -> Iterator[Log]:
    from probes.kernel_text import kernel_texts

    lost: list[KernelText] = []
    for text in kernel_texts(host):
        if text.data:
            data, first = _tail(text.data)
            yield Log(text.title, data, text.found, first, kernel=text)
        elif text.kind != "crash":
            lost.append(text)
    for text in lost:
        yield Log(text.title, why=Text(text.why, text.why), kernel=text)


def _tail(data: bytes) -> tuple[bytes, int]:
    """The last lines of a text that is held anyway, and the number of the first of them."""
    over = data.count(b"\n") - KEPT
    at = 0
    for _ in range(over):
        at = data.index(b"\n", at) + 1
    return data[at:], 1 + max(0, over)


# --- files --------------------------------------------------------------------------------


def _file(name: str, path: str, is_log: bool, check: Check) -> Log | None:
    """The log in a file; None for what is no log: the output of a tool is shown elsewhere."""
    if name == "-":
        why = Text(
            "standard input can be read once only, and was read for the diagnosis", "标准输入只能读取一次，已用于诊断"
        )
        return Log(name, why=why) if is_log else None
    try:
        if not is_log and not _is_log(path):
            return None
        data, first, why = _end_of(path, check)
        return Log(name, data, _seen(path, check), first, why)
    except (GpudiagError, OSError) as error:
        return Log(name, why=Text(str(error), str(error)))


def _is_log(path: str) -> bool:
    from probes._scan_open import foreign, opened, unpacked
    from probes.base import LogFormat, best
    from probes.registry import formats

    if Path(path).is_dir():
        return False
    _, stream, _, _ = opened(path)
    with stream:
        head = _head(unpacked(stream))
    if foreign(head, path) is not None:
        return False
    return isinstance(best(formats(), head.decode("utf-8", "replace")), LogFormat)


def _head(reader: Reader) -> bytes:
    """What a format is recognised by."""
    head = b""
    while len(head) < HEAD and (more := reader.read(HEAD - len(head))):
        head += more
    return head


def _end_of(path: str, check: Check) -> tuple[bytes, int, Text]:
    """The last lines of a file of any size, the number of the first of them, and what was wrong with the file."""
    from probes._scan_open import foreign, opened, unpacked

    name, stream, _, _ = opened(path)
    held: deque[bytes] = deque()
    size = ahead = newlines = 0
    with stream:
        reader = unpacked(stream)
        chunk = _head(reader)
        if (strange := foreign(chunk, name)) is not None:
            return b"", 1, strange
        while chunk:
            check()
            held.append(chunk)
            size, newlines = size + len(chunk), newlines + chunk.count(b"\n")
            while len(held) > 1:
                n = held[0].count(b"\n")
                if size - len(held[0]) < _HELD and newlines - n < KEPT:
                    break
                size, newlines, ahead = size - len(held[0]), newlines - n, ahead + n
                held.popleft()
            chunk = reader.read(_CHUNK)
    data = b"".join(held)
    if ahead:  # what is held may begin in the middle of a line
        data, ahead = data.partition(b"\n")[2], ahead + 1
    data, first = _tail(data)
    return data, ahead + first, reader.problem or NO_TEXT


def _seen(path: str, check: Check) -> tuple[Observation, ...]:
    from assistant import formats
    from probes.scan import scan

    return scan([path], formats.log_formats(), progress=lambda *_: (check(), None)[1]).observations


# --- as it is written ---------------------------------------------------------------------


class Tail:
    """Follows this machine's kernel log in a thread of its own; costs nothing while the kernel is silent."""

    def __init__(self, judge: Judge, root: str = "") -> None:
        from assistant.watch.follow import Follower

        self._judge, self._number, self._until = judge, 0, 0
        self._heard: SimpleQueue[tuple[int, bytes]] = SimpleQueue()
        self._known: set[str] = set()  # lines that were read, and may be heard as well
        self._ahead: deque[str] = deque(maxlen=AHEAD)  # the last lines that were heard
        self._follower = Follower(
            (), lambda: None, root, heard=lambda record: self._heard.put((time.time_ns(), record))
        )

    @property
    def source(self) -> str:
        """What is listened to; empty when nothing can be."""
        return self._follower.source

    def start(self) -> None:
        """Begin: ahead of reading what there is, so that nothing falls between."""
        self._follower.start()

    def after(self, read: Iterable[LogLine], number: int) -> None:
        """What was read meanwhile: new lines count on from `number`, and none of `read` is told again."""
        self._number, self._until = number, time.time_ns()
        self._known = {line.message for line in deque(read, maxlen=REPEATED)}

    def take(self, seconds: float) -> list[LogLine]:
        """New lines; waits for them at most `seconds`. What is written at once is read at once, with the folds of any log."""
        try:
            records = [self._heard.get(timeout=seconds)]
        except Empty:
            return []
        until = time.monotonic() + BURST
        while (left := until - time.monotonic()) > 0:
            try:
                records.append(self._heard.get(timeout=left))
            except Empty:
                break
        made = written(((at, record.decode("utf-8", "replace")) for at, record in records), self._ahead, self._judge)
        fresh = [line for line in made if (line.at or 0) > self._until or line.message not in self._known]
        self._ahead.extend(line.raw for line in fresh[-AHEAD:])
        first = self._number + 1
        self._number += len(fresh)
        return [line._replace(key=f"+{n}", number=n) for n, line in enumerate(fresh, first)]

    def close(self) -> None:
        """Stop listening."""
        self._follower.close()
