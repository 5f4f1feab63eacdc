"""Another machine as a host: read, listed, run and looked at as this one is, over one connection.

What a probe asks is answered by `probes.remote.far`, which is sent over the line; the replies are what
`probes.live_host.LiveHost` would have given there. When the line breaks, every call from then on
says so: what came before stays.
"""

from __future__ import annotations

import errno
import os
import secrets
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

from knowledge.language import NO_TEXT, Text
from knowledge.observation import Status
from knowledge.record import dataclass
from knowledge.text import excerpt
from probes import _children
from probes.hang_memory import HangMemory
from probes.host import CallKind, Reply, cut_between, iso
from probes.live_host import (
    CLOSED,
    COLLECTORS,
    DRIVER_TOOLS,
    FOLDERS,
    KEPT,
    OUTPUT_CAP,
    PACKAGED,
    READ_DEADLINE,
    fault,
    told,
)
from probes.remote import ConnectError, far, pods, profiler, sending, words
from probes.remote.line import Answer, LateError, Line, LineBrokenError
from probes.remote.reach import Reach, Via, argv

OLDEST = (3, 6)  # for files, listings and commands
OLDEST_FOR_SNAPSHOTS = (3, 8)  # what collectors are written for
TESTS, TEST_GRACE = "active", 12.0  # the collector that ends a test before itself, and the seconds it has for that
_CLOCKS = 3  # questions for the time of the other side: the quickest answer counts


@dataclass(frozen=True, slots=True)
class Waits:
    """How long is waited for the other side, in seconds."""

    margin: float = 5.0  # behind the budget, after which both ends of the line give up by themselves
    answer: float = 5.0  # behind its deadline, that an answer may take on its way
    start: float = 5.0  # behind those of the connection, that an interpreter there may take to start
    read: float = READ_DEADLINE  # for one file or listing


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How far the clock there is ahead of ours: ns, and by how much that may be wrong either way."""

    ns: int
    error: int


@dataclass(frozen=True, slots=True)
class WhoAmI:
    """What we are on the other side."""

    user: str
    uid: int
    container: str = ""  # kubernetes, docker, podman, lxc; empty when nothing says that it is one

    @property
    def root(self) -> bool:
        """Whether it may read what only root may."""
        return self.uid == 0


class RemoteHost:
    """A machine at the other end of a line. Threads may share it; a context manager that connects and closes."""

    def __init__(
        self, reach: Reach, *, budget: float, cap: int = OUTPUT_CAP, memory: HangMemory | None = None,
        command: Sequence[str] = (), waits: Waits = Waits(),
    ) -> None:  # fmt: skip
        """`budget` is seconds for everything that is asked, after which both sides end by themselves.

        `memory` remembers calls that hung there. `command` is what is started instead of ssh, srun or kubectl.
        """
        self._reach = reach
        self._waits = waits
        self._limit = budget + waits.margin
        self._cap = cap
        self._memory = memory
        self._command = list(command)
        self._line: Line | None = None
        self._closed = False
        self._kept: set[str] = set()  # collectors that are there already
        self._lock = Lock()
        self._hello: Mapping[str, Any] = {}
        self._as_of: int | None = None
        self._offset = ClockOffset(0, 0)

    # --- the connection -------------------------------------------------------------------

    def connect(self) -> RemoteHost:
        """Reach the machine. ConnectError when that cannot be."""
        if self._line is None:
            self._line = line = self._begun()
            try:
                self._hello = _greeting(line.hello(self._reach.connect_timeout + self._waits.start))
                self._as_of = self._hello["time"]
                self._check_version()
                self._compare_clocks()
            except (LineBrokenError, LateError, ValueError) as error:
                line.close()
                said, ended = f"{line.errors}\n{line.noise}", str(error)
                raise words.explained(self._reach, said, ended, late=isinstance(error, LateError)) from None
            except BaseException:
                line.close()
                raise
        return self

    def _begun(self) -> Line:
        """A line on which nothing was said yet."""
        reach = self._reach
        if not self._command:
            if reach.via is Via.KUBERNETES and reach.selector and not reach.pod:
                reach = self._reach = replace(reach, pod=pods.found(reach, reach.connect_timeout + self._waits.start))
            try:
                self._command = argv(reach)
            except ValueError as error:
                hint = Text(
                    'pod = "..." or selector = "..." in the inventory', '在清单中设置 pod = "..." 或 selector = "..."'
                )
                raise ConnectError(Text(str(error)), hint=hint) from None
        mark = secrets.token_hex(16)
        first = sending.payload({"mark": mark, "limit": self._limit, "keep": KEPT, "folders": FOLDERS})
        limit = self._limit + reach.connect_timeout + self._waits.start
        try:
            return Line(self._command, first, mark.encode(), limit=limit, env=sending.child_environment(reach.via))
        except FileNotFoundError:
            raise words.absent(reach) from None
        except OSError as error:
            raise words.cannot_start(reach, self._command[0], error) from None

    def close(self) -> None:
        """End the line, and with it all that runs on the other side."""
        self._closed = True
        if self._line is not None:
            self._line.close()

    def __enter__(self) -> RemoteHost:
        return self.connect()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_version(self) -> None:
        if tuple(self._hello["python"]) < OLDEST:
            python = self._reach.python
            raise words.refused(
                self._reach,
                Text(f"{python} is {self.python}, and 3.6 or newer is needed", f"{python} 为 {self.python}，需要 3.6 或更新版本"),
                Text('name another: python = "/usr/bin/python3.9" in the inventory', '在清单中指定其他解释器：python = "/usr/bin/python3.9"'),
            )  # fmt: skip

    def _compare_clocks(self) -> None:
        """As NTP does: the time there, against the middle of asking and hearing."""
        best: ClockOffset | None = None
        for _ in range(_CLOCKS):
            asked, begun = time.time_ns(), time.monotonic_ns()
            answer = self._ask({"op": "clock"}, 0, self._waits.answer)
            error = (time.monotonic_ns() - begun) // 2
            there = answer.end.get("time")
            if there is not None and (best is None or error < best.error):
                best = ClockOffset(there - (asked + error), error)
        self._offset = best or self._offset

    # --- what it is -----------------------------------------------------------------------

    @property
    def name(self) -> str:
        """What people call it, as it was reached."""
        return self._reach.name

    @property
    def reach(self) -> Reach:
        """How it is reached; with the pod that was found, once it is."""
        return self._reach

    @property
    def as_of(self) -> int | None:
        """When it answered first, by its own clock, ns since 1970 UTC."""
        return self._as_of

    @property
    def clock_offset(self) -> ClockOffset:
        """How far its clock is ahead of the one here."""
        return self._offset

    @property
    def whoami(self) -> WhoAmI:
        """The user there, and whether that is in a container."""
        return WhoAmI(
            str(self._hello.get("user", "")), int(self._hello.get("uid", -1)), str(self._hello.get("container", ""))
        )

    @property
    def python(self) -> str:
        """The version of the interpreter there, such as 3.8.18; empty before it is connected."""
        return ".".join(str(n) for n in self._hello.get("python", ()))

    @property
    def hostname(self) -> str:
        """What it calls itself: in a pod the pod's name."""
        return str(self._hello.get("host", ""))

    @property
    def boot_id(self) -> str:
        """What tells one boot of it from another; empty where its kernel does not say."""
        return str(self._hello.get("boot", ""))

    @property
    def broken(self) -> str:
        """Why the line ended by itself; empty while it lives, and when it was closed from here."""
        if self._line is None or self._line.closed or not self._line.broken:
            return ""
        return words.broke(self.name, self._line.broken).en

    @property
    def broken_text(self) -> Text:
        """The same in both languages."""
        return words.broke(self.name, self._line.broken) if self.broken and self._line is not None else NO_TEXT

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes that went there and came back so far."""
        return (self._line.sent, self._line.received) if self._line else (0, 0)

    def which(self, names: Sequence[str]) -> dict[str, str]:
        """Where the programs `names` lie there; those that are not there are left out. ConnectError when the line is broken."""
        try:
            ask = {"op": "which", "names": list(names), "deadline": self._waits.read}
            answer = self._ask(ask, 1 << 20, self._waits.read)
        except (LineBrokenError, LateError) as error:
            raise ConnectError(self._said(error)) from None
        found = answer.end.get("said")
        places = found if isinstance(found, list) else []
        return {name: excerpt(place) for name, place in zip(names, places, strict=False) if isinstance(place, str)}

    # --- what is asked of it --------------------------------------------------------------

    def read(self, path: str) -> Reply:
        """The file, at most `cap` bytes of it."""
        reply = Reply(CallKind.FILE, (path,), started=self._now())
        ask = {"op": "read", "path": self._reach.root + path, "cap": self._cap, "deadline": self._waits.read}
        header, data = self._file(ask)
        if not header.get("ok"):
            status, why = fault(header)
            return replace(reply, status=status, detail=f"{reply.title}: {excerpt(why, 300)}")
        if not header.get("lost"):
            return replace(reply, data=data)
        head = header.get("head", 0)
        data, said = cut_between(data[:head], data[head:], header["lost"])
        return replace(reply, data=data, cut=True, detail=said)

    def files(self, pattern: str) -> list[str]:
        """Paths that match, sorted; none when the listing takes longer than a file may.

        ConnectError when the line is broken: no listing is not an empty one.
        """
        root = self._reach.root
        header, data = self._file({"op": "glob", "path": root + pattern, "deadline": self._waits.read})
        if header.get("broken"):
            raise ConnectError(self.broken_text or Text(str(header["why"])))
        return [p.removeprefix(root) for p in os.fsdecode(data).splitlines()] if header.get("ok") else []

    def run(self, argv: Sequence[str], *, deadline: float) -> Reply:
        """The output of a command."""
        blank = Reply(CallKind.COMMAND, tuple(argv), started=self._now())
        sent = list(argv)
        if self._reach.root and argv[0] == "journalctl":  # the machine's journal lies below its root
            sent.insert(1, f"--root={self._reach.root}")
        return self._child(blank, {"op": "run", "argv": sent}, deadline)

    def snapshot(self, name: str, *args: str, deadline: float) -> Reply:
        """The output of a collector, which is sent when it is first asked for; a capture is made by the gpudiag that is there.

        ValueError when there is none of that name.
        """
        path = COLLECTORS / f"{name}.py"
        if not name.isidentifier() or not path.is_file():
            raise ValueError(f"there is no collector {name!r}")
        blank = Reply(CallKind.SNAPSHOT, (name, *args), started=self._now())
        if name == profiler.COLLECTOR:

            def run(argv: Sequence[str]) -> Reply:
                return self._child(blank, {"op": "run", "argv": list(argv)}, deadline)

            return profiler.answer(blank, self._reach.root, self.which, run, self.name)
        if self._hello and tuple(self._hello["python"]) < OLDEST_FOR_SNAPSHOTS:
            why = (
                f'the python there is {self.python}, and this reading needs 3.8 or newer: python = "..." names another'
            )
            return replace(blank, status=Status.UNSUPPORTED, detail=why)
        packages = ["pynvml"] if name in PACKAGED else []
        for module in (*packages, name):
            self._keep(module, path)
        # It ends by itself with what it has, a little ahead of being ended.
        own = max(deadline - 0.5, deadline * 0.7)
        rooted = ["--root", self._reach.root] if self._reach.root else []
        words = ["--deadline", f"{own:.3f}", *rooted, *args]
        ask = {"op": "snapshot", "name": name, "args": words, "with": packages}
        return self._child(blank, {**ask, "grace": TEST_GRACE} if name == TESTS else ask, deadline)

    def finish(self, name: str) -> None:
        """A collector that runs there ends now, with what it has: its answer comes as it would have."""
        if self._line is not None:
            self._line.tell({"op": "finish", "name": name})

    # --- how it is asked ------------------------------------------------------------------

    def _keep(self, name: str, path: Path) -> None:
        """Send a collector, or a package that it needs, unless it is there."""
        with self._lock:  # whoever asks next finds it sent: frames keep their order
            if name not in self._kept and self._line is not None:
                source = sending.package(name) if name == "pynvml" else path.read_bytes()
                self._line.tell({"op": "keep", "name": name}, zlib.compress(source, 9))
                self._kept.add(name)

    def _child(self, blank: Reply, ask: dict[str, Any], deadline: float) -> Reply:
        driver = blank.call[0].rsplit("/", 1)[-1] in DRIVER_TOOLS
        memory = self._memory.of(self.boot_id, self._started) if self._memory and driver and self.boot_id else None
        if memory and (refusal := memory.refusal(blank.key)):
            status = Status.TIMEOUT if refusal.hangs else Status.FAILED
            return replace(blank, status=status, detail=f"{blank.title}: {refusal.why}")
        at = iso(blank.started) or ""
        if memory:
            memory.begin(blank.key, at)
        stuck = None
        try:
            answer = self._ask({**ask, "cap": self._cap, "deadline": deadline}, self._cap, deadline)
            if answer.end.get("stuck"):
                stuck = _children.Stuck(*answer.end["stuck"])
        except LateError:
            why = f"no end after {deadline:.3g} s, and no word of it from {self.name}"
            return replace(blank, status=Status.TIMEOUT, detail=why)
        except LineBrokenError as error:
            if not self._closed:
                memory = None  # the machine may have gone down with it: the entry stays
            return replace(blank, status=Status.FAILED, detail=self._gone(error))
        finally:
            if memory:
                memory.end(blank.key, at, stuck)
        return _answered(blank, answer, stuck, deadline)

    def _file(self, ask: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """What a reader there says, as `_reader.answer` would."""
        broken = {"ok": False, "errno": None, "broken": True}
        try:
            answer = self._ask(ask, self._cap, self._waits.read)
        except LateError as error:
            return {"ok": False, "errno": errno.ETIMEDOUT, "why": str(error)}, b""
        except LineBrokenError as error:
            return {**broken, "why": self._gone(error)}, b""
        end, said = answer.end, answer.end.get("said")
        if isinstance(said, dict) and "ok" in said:
            return said, answer.out
        if end.get("timed_out"):
            stuck = end.get("stuck")
            where = f": process {stuck[0]} cannot be killed ({excerpt(stuck[2], 80)})" if stuck else ""
            return {"ok": False, "errno": errno.ETIMEDOUT, "why": f"no answer in {self._waits.read:g} s{where}"}, b""
        why = end["fault"][1] if end.get("fault") else f"it ended with {end.get('exit')}"
        return {"ok": False, "errno": None, "why": f"the reading process failed: {excerpt(str(why), 200)}"}, b""

    def _ask(self, ask: dict[str, Any], room: int, deadline: float) -> Answer:
        if self._closed:
            raise LineBrokenError(CLOSED)
        if self._line is None:
            raise LineBrokenError("it was never made")
        return self._line.ask(ask, room=room, patience=deadline + self._waits.answer)

    def _gone(self, error: Exception) -> str:
        """Why there is no answer, for a reply."""
        return self._said(error).en

    def _said(self, error: Exception) -> Text:
        if self._closed:
            return Text(CLOSED, "查看已被中断")
        return self.broken_text or words.broke(self.name, str(error))

    def _now(self) -> int:
        """The time there."""
        return time.time_ns() + self._offset.ns

    def _started(self, pid: int) -> str:
        """When a process there began, as `probes._children.start_time` tells it."""
        with suppress(LineBrokenError, LateError):
            answer = self._ask(
                {"op": "read", "path": f"/proc/{pid}/stat", "cap": 1 << 16, "deadline": self._waits.read}, 1 << 16, 1.0
            )
            return next(iter(answer.out.decode("utf-8", "replace").rpartition(")")[2].split()[19:20]), "")
        return ""


def _answered(blank: Reply, answer: Answer, stuck: _children.Stuck | None, deadline: float) -> Reply:
    """The reply that a child's answer makes."""
    end, said = answer.end, answer.end.get("said")
    said = said if isinstance(said, dict) else {}
    if said.get("absent"):
        return replace(blank, status=Status.UNSUPPORTED, detail=f"{excerpt(blank.call[0], 80)} is not installed")
    if wrong := end.get("fault") or said.get("fault"):
        status = Status.DENIED if wrong[0] in (errno.EACCES, errno.EPERM) else Status.FAILED
        return replace(blank, status=status, detail=f"{blank.title}: cannot be started: {excerpt(str(wrong[1]), 200)}")
    head = end.get("head") or 0
    ours = replace(stuck, where=excerpt(stuck.where, 120)) if stuck else None
    outcome = _children.Outcome(
        answer.out[:head], answer.out[head:], answer.errors[: _children.ERRORS_CAP], end.get("lost") or 0, end.get("exit"),
        bool(end.get("timed_out")), ours, f"{_children.BUSY} or stopped" if end.get("busy") is True and not ours else "",
    )  # fmt: skip
    return told(blank, outcome, deadline)


def _greeting(hello: Mapping[str, Any]) -> dict[str, Any]:
    """What the far side says of itself, cleaned. ValueError for one that is not ours."""
    version, at, uid = hello.get("python"), hello.get("time"), hello.get("uid")
    if hello.get("hello") != far.VERSION:
        raise ValueError("something else answers there")
    if not (isinstance(version, list) and len(version) == 3 and all(type(n) is int and 0 <= n < 1000 for n in version)):
        raise ValueError("it has no version that can be one")
    if type(at) is not int or not 0 < at < 1 << 63 or type(uid) is not int or not -1 <= uid < 1 << 32:
        raise ValueError("it has no clock, or no user, that can be one")
    texts = {name: excerpt(str(hello.get(name, "")), 255) for name in ("host", "user", "container", "boot")}
    return {"python": version, "time": at, "uid": uid, **texts}


__all__ = ["ClockOffset", "ConnectError", "Reach", "RemoteHost", "Via", "Waits", "WhoAmI"]
