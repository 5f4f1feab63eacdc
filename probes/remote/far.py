"""The far side of a connection: answers what a host is asked, on a machine where nothing is installed.

Sent over the line as text and run by ``python3 -c`` (`probes.remote.reach.BOOTSTRAP`); nothing is written there. Standard
library only; Python 3.6 for hello, files, listings and commands, 3.8 for collectors, which are sent when they are first asked for.

One thread and one loop. Everything that may hang happens in forked children (a read, a listing, a command, a collector),
each in a session of its own, with a deadline and a bound of output; all are killed when the line ends, when the time limit is
spent, and each by its own alarm should this process be killed. Memory stays small: the beginning of an output is handed on as
it comes, a bounded end of it is kept, and nothing more is read while the line is full.

To here: one JSON line, and as many bytes as its `size` says. From here: the lengths of a header and of a body (two big-endian
32-bit numbers), the JSON header, the body. An answer is any number of bodies (`out`, `err`; `z`: the length before zlib) and
one header with `end`.
"""

# Typed in quotes for Python 3.6; os.path and plain try for a process that shall be small; children never raise into the loop.
# ruff: noqa: PTH110, PTH113, PTH118, PTH120, PTH123, BLE001, SIM105, UP031
import collections
import errno
import gc
import json
import os
import select
import signal
import struct
import sys
import time
import zlib

TYPE_CHECKING = False  # the typing module would cost its import
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, NoReturn

VERSION = 1
CHUNK = 1 << 16  # bytes of one read and of one body
FULL = 1 << 20  # bytes that wait for the line, beyond which children are not read
TAILS = 16 << 20  # bytes of ends of outputs that are kept here, of all children together
JOBS = 64  # children at a time
SNAPSHOTS = 8  # collectors at a time: each takes 4 to 10 MB
PART = 6000  # characters that are compiled at once, or a little more
# What most collectors import: once here, instead of once in each of them, and most of it in shared pages.
COMMON = ("argparse", "contextlib", "ctypes", "functools", "pathlib", "re", "threading", "traceback", "typing")
ERRORS = 32 << 10  # bytes of the head, and of the tail, of standard error (probes._children.ERRORS_CAP together)
TERM_GRACE, KILL_GRACE, DRAIN_GRACE, LEAVE_GRACE = 0.3, 0.3, 0.2, 1.0  # seconds, as in probes._children
ALARM = 3  # seconds behind the time limit at which a child's alarm ends it, should nobody else


class Job:
    """One question, and the child that answers it."""

    def __init__(self, ask: "dict[str, Any]", now: float) -> None:
        self.ask = ask
        self.id = int(ask["id"])
        self.came = now
        self.until = now + max(float(ask.get("deadline", 5.0)), 0.0)
        self.half = int(ask.get("cap", FULL)) // 2
        # Readers bound what they say themselves, and tell where their head ends.
        self.room = self.half if ask["op"] in ("run", "snapshot") else sys.maxsize
        self.pid = 0
        self.pipes = {}  # type: dict[int, str]  # what is open, and which of the three it is
        self.total = self.passed = self.held = 0
        self.tail = collections.deque()  # type: collections.deque[bytes]
        self.errors, self.errors_tail, self.said = b"", b"", b""
        self.code = None  # type: int | None
        self.reaped = self.sent_term = self.sent_kill = self.timed_out = self.broken_off = self.quiet = self.busy = (
            False
        )
        self.finished = False  # told to end with what it has
        self.grace = max(TERM_GRACE, min(float(ask.get("grace", 0.0)), 60.0))  # seconds from being told to being killed
        self.next = 0.0  # when the state changes by itself
        self.silent = 0.0  # since when its output is closed
        self.end = None  # type: dict[str, Any] | None

    def take(self, which: str, part: bytes) -> "bytes":
        """Keep what came from a pipe; returned is what goes on at once."""
        if which == "say":
            self.said = (self.said + part)[:CHUNK]
            return b""
        if which == "err":
            room = ERRORS - len(self.errors)
            self.errors += part[:room]
            self.errors_tail = (self.errors_tail + part[room:])[-ERRORS:] if room < len(part) else self.errors_tail
            return b""
        self.total += len(part)
        now, later = part[: self.room], part[self.room :]
        self.room -= len(now)
        self.passed += len(now)
        if later:
            self.tail.append(later)
            self.held += len(later)
            self.trim(self.half)
        return now

    def trim(self, most: int) -> None:
        """Let go of the oldest of the tail, so that `most` bytes stay."""
        while self.held > most:
            over = self.held - most
            first = self.tail.popleft()
            if len(first) > over:
                self.tail.appendleft(first[over:])
                self.held -= over
            else:
                self.held -= len(first)


class Far:
    """The loop."""

    def __init__(self, start: "dict[str, Any]") -> None:
        self.start = start
        self.limit = time.monotonic() + float(start["limit"])
        self.env = environment(start["keep"], start["folders"])
        self.reader = module("_reader", start["reader"])
        self.kept = {}  # type: dict[str, bytes]  # collectors and what they import, compressed
        self.jobs = {}  # type: dict[int, Job]
        self.waiting = collections.deque()  # type: collections.deque[Job]
        self.line = bytearray()  # what came and is not yet a whole question
        self.out = collections.deque()  # type: collections.deque[bytes]
        self.queued = 0
        self.over = False
        self.wake_read, self.wake_write = os.pipe()
        for handle in (0, 1, self.wake_read, self.wake_write):
            os.set_blocking(handle, False)
        signal.set_wakeup_fd(self.wake_write)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, self.stop)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    def stop(self, *_: "Any") -> None:
        """A signal: end everything."""
        self.over = True

    # --- the line ---------------------------------------------------------------------------

    def say(self, header: "dict[str, Any]", body: bytes = b"") -> None:
        """Put a frame behind those that wait for the line."""
        if len(body) > 400:
            small = zlib.compress(body, 1)
            if len(small) < len(body):
                header["z"] = len(body)
                body = small
        head = json.dumps(header).encode()
        frame = struct.pack(">II", len(head), len(body)) + head + body
        self.out.append(frame)
        self.queued += len(frame)

    def write(self) -> None:
        """Send what the line takes now."""
        while self.out:
            first = self.out.popleft()
            try:
                done = os.write(1, first)
            except BlockingIOError:
                self.out.appendleft(first)
                return
            except OSError:
                self.over = True
                return
            self.queued -= done
            if done < len(first):
                self.out.appendleft(first[done:])

    def listen(self) -> None:
        """Take what came over the line."""
        try:
            part = os.read(0, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        if not part:
            self.over = True
            return
        self.line += part
        while True:
            end = self.line.find(b"\n")
            if end < 0:
                return
            ask = json.loads(bytes(self.line[:end]).decode())
            size = int(ask.get("size", 0))
            if len(self.line) < end + 1 + size:
                return
            body = bytes(self.line[end + 1 : end + 1 + size])
            del self.line[: end + 1 + size]
            self.take(ask, body)

    def take(self, ask: "dict[str, Any]", body: bytes) -> None:
        """One question."""
        if ask["op"] == "keep":
            self.prepare()
            self.kept[str(ask["name"])] = body
        elif ask["op"] == "clock":
            self.say({"id": ask["id"], "end": True, "time": now_ns()})
        elif ask["op"] == "finish":
            for job in self.jobs.values():
                if job.ask.get("name") == ask["name"] and not job.sent_term:
                    job.finished, job.until = True, 0.0
        elif ask["op"] == "cancel":
            self.drop(int(ask["id"]))
        elif ask["op"] == "bye":
            self.over = True
        else:
            self.waiting.append(Job(ask, time.monotonic()))

    def prepare(self) -> None:
        """Before the first collector."""
        if not self.kept:
            for name in COMMON:
                try:
                    __import__(name)
                except ImportError:  # a small build of Python
                    pass
            getattr(gc, "freeze", gc.collect)()  # children leave the pages of what is here alone

    def drop(self, number: int) -> None:
        """Nobody waits for this answer any more."""
        job = self.jobs.get(number)
        if job is None:
            self.waiting = collections.deque(j for j in self.waiting if j.id != number)
            return
        job.quiet = True
        job.until = 0.0
        job.tail.clear()
        job.held = 0

    # --- the loop ---------------------------------------------------------------------------

    def run(self) -> None:
        """Until the line ends or the time is spent."""
        while not self.over:
            now = time.monotonic()
            if now >= self.limit:
                break
            self.admit(now)
            wait = min([self.limit - now, 5.0] + [self.step(job, now) for job in list(self.jobs.values())])
            self.flush()
            self.write()
            self.poll(now, wait)

    def admit(self, now: float) -> None:
        """Begin what there is room for. Time that was spent waiting for it is nobody's fault."""
        snapshots = sum(job.ask["op"] == "snapshot" for job in self.jobs.values())
        later = collections.deque()  # type: collections.deque[Job]
        while self.waiting and len(self.jobs) < JOBS:
            job = self.waiting.popleft()
            if job.ask["op"] == "snapshot":
                snapshots += 1
                if snapshots > SNAPSHOTS:
                    later.append(job)
                    continue
            job.until += now - job.came
            self.begin(job)
        self.waiting.extendleft(reversed(later))

    def poll(self, began: float, wait: float) -> None:
        """Wait for something to happen, and take it."""
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(1, select.POLLOUT if self.out else 0)  # 0: that nobody reads any more is told all the same
        poll.register(self.wake_read, select.POLLIN)
        pipes, stalled = {}, []
        for job in self.jobs.values():
            for handle, which in job.pipes.items():
                if which == "out" and job.room and self.queued > FULL:
                    stalled.append(job)
                    continue
                pipes[handle] = job
                poll.register(handle, select.POLLIN)
        try:
            found = poll.poll(max(0, int(wait * 1000) + 1))
        except OSError:  # EINTR before Python knew what to do about it
            return
        for handle, event in found:
            if handle == 0:
                self.listen()
            elif handle == 1 and event & (select.POLLERR | select.POLLHUP | select.POLLNVAL):
                self.over = True
            elif handle == self.wake_read:
                os.read(self.wake_read, 512)
            elif handle in pipes:
                self.pump(pipes[handle], handle)
        for job in stalled:  # the line is slow: that is not the child's fault
            job.until += time.monotonic() - began
            job.next += time.monotonic() - began if job.reaped else 0.0

    def pump(self, job: Job, handle: int) -> None:
        """Take what a child has written."""
        try:
            part = os.read(handle, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        if not part:
            os.close(handle)
            del job.pipes[handle]
            return
        head = job.take(job.pipes[handle], part)
        if head and not job.quiet:
            self.say({"id": job.id, "part": "out"}, head)
        over = sum(j.held for j in self.jobs.values()) - TAILS
        if over > 0:  # of one that has ended it is told already how much is left out
            largest = max((j for j in self.jobs.values() if j.end is None), key=lambda j: j.held)
            largest.trim(max(largest.held - over, 0))

    def flush(self) -> None:
        """Send what is left of answers that have come to their end, as far as there is room."""
        for job in [j for j in self.jobs.values() if j.end is not None]:
            while job.tail and self.queued < FULL:
                part = job.tail.popleft()
                job.held -= len(part)
                self.say({"id": job.id, "part": "out"}, part)
            if not job.tail:
                if not job.quiet:
                    if job.errors:
                        self.say({"id": job.id, "part": "err"}, job.errors + job.errors_tail)
                    self.say(job.end or {})
                del self.jobs[job.id]

    # --- children ---------------------------------------------------------------------------

    def begin(self, job: Job) -> None:
        """Fork the child that answers."""
        pipes = []  # type: list[int]
        try:
            for _ in range(3):
                pipes.extend(os.pipe())
            job.pid = os.fork()
        except OSError as error:
            for handle in pipes:
                os.close(handle)
            self.say({"id": job.id, "end": True, "fault": [error.errno, error.strerror or ""]})
            return
        if job.pid == 0:
            self.child(job, pipes)
        for number, which in enumerate(("out", "err", "say")):
            os.close(pipes[2 * number + 1])
            os.set_blocking(pipes[2 * number], False)
            job.pipes[pipes[2 * number]] = which
        self.jobs[job.id] = job

    def step(self, job: Job, now: float) -> float:
        """Look after one child; seconds until it wants to be looked after again."""
        if job.end is not None:
            return 0.05
        if not job.reaped:
            try:
                pid, status = os.waitpid(job.pid, os.WNOHANG)
            except OSError:
                pid, status = job.pid, 0
            if pid:
                job.reaped = True
                job.code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
                job.next = now + DRAIN_GRACE
        if job.reaped:
            if now < job.next and job.pipes:
                return min(job.next - now, 0.02)
            signal_group(job.pid, signal.SIGKILL, None)  # whatever it left running
            return self.ended(job, None)
        spoken = not any(which != "say" for which in job.pipes.values())
        job.silent = (job.silent or now) if spoken else 0.0
        if not job.sent_term:
            left = min(job.until, job.silent + LEAVE_GRACE if spoken else job.until) - now
            if left > 0:
                return left
            job.broken_off, job.timed_out = True, now >= job.until and not job.finished
            job.busy = job.timed_out and where(job.pid)[6:7] in ("R", "T")
            job.sent_term, job.next = True, now + job.grace
            signal_group(job.pid, signal.SIGTERM, job.pid)
        elif now >= job.next and not job.sent_kill:
            job.sent_kill, job.next = True, now + KILL_GRACE
            signal_group(job.pid, signal.SIGKILL, job.pid)
        elif now >= job.next:
            return self.ended(job, [job.pid, start_time(job.pid), where(job.pid)])
        return 0.02

    def ended(self, job: Job, stuck: "list[Any] | None") -> float:
        """It is over: say how, when everything else of it is said."""
        for handle in job.pipes:
            os.close(handle)
        job.pipes = {}
        lost = job.total - job.passed - job.held
        job.end = {
            "id": job.id, "end": True, "exit": None if job.broken_off else job.code, "timed_out": job.timed_out,
            "lost": lost, "head": job.passed, "stuck": stuck, "busy": job.busy,
        }  # fmt: skip
        try:
            job.end["said"] = json.loads(job.said.decode())
        except ValueError:  # nothing was said, or it was ended in the middle of it
            pass
        return 0.0

    def child(self, job: Job, pipes: "list[int]") -> "NoReturn":
        """In the child: do it and leave, whatever happens."""
        code = 1
        say = pipes[5]
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            for ignored in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
                signal.signal(ignored, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.alarm(int(max(self.limit - time.monotonic(), 0)) + ALARM)
            null = os.open(os.devnull, os.O_RDWR)
            for number, handle in enumerate((null, pipes[1], pipes[3])):
                os.dup2(handle, number)
            mine = {0, 1, 2, say}
            held = [null, self.wake_read, self.wake_write] + pipes + [h for j in self.jobs.values() for h in j.pipes]
            for handle in set(held) - mine:
                os.close(handle)
            work = {
                "read": self.read,
                "glob": self.glob,
                "run": self.command,
                "snapshot": self.snapshot,
                "which": self.which,
            }
            code = work[job.ask["op"]](job.ask, say)
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        except BaseException as error:  # the edge of a process: what went wrong is its last line
            try:
                os.write(2, ("%s: %s\n" % (type(error).__name__, error)).encode("utf-8", "replace"))
            except BaseException:
                pass
        finally:
            os._exit(code & 255)
        raise AssertionError

    def read(self, ask: "dict[str, Any]", say: int) -> int:
        """A file: its head as it comes, then its tail."""
        done = [0]

        def head(part: bytes) -> None:
            write_all(1, part)
            done[0] += len(part)

        try:
            _, tail, lost = self.reader.read(ask["path"], ask["cap"], head)
            write_all(1, tail)
            told = {"ok": True, "lost": lost, "head": done[0]}
        except OSError as error:
            told = {"ok": False, "errno": error.errno, "why": error.strerror or str(error)}
        except ValueError as error:  # a path with a NUL
            told = {"ok": False, "errno": errno.EINVAL, "why": str(error)}
        os.write(say, json.dumps(told).encode())
        return 0

    def glob(self, ask: "dict[str, Any]", say: int) -> int:
        """A listing."""
        told, data = self.reader.answer({"op": "glob", "path": ask["path"]})
        write_all(1, data)
        os.write(say, json.dumps(told).encode())
        return 0

    def which(self, ask: "dict[str, Any]", say: int) -> int:
        """Where programs lie; null for those that are not there."""
        os.write(say, json.dumps([found(name, self.env["PATH"]) for name in ask["names"]]).encode())
        return 0

    def command(self, ask: "dict[str, Any]", say: int) -> int:
        """A command takes this process's place."""
        words = ask["argv"]
        program = found(words[0], self.env["PATH"])
        if program is None:
            os.write(say, b'{"absent": true}')
            return 127
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            os.execve(program, words, self.env)
        except (OSError, ValueError) as error:
            told = [getattr(error, "errno", None), getattr(error, "strerror", None) or str(error)]
            os.write(say, json.dumps({"fault": told}).encode())
        return 126

    def snapshot(self, ask: "dict[str, Any]", say: int) -> int:
        """A collector, as if it had been called as a program."""
        os.close(say)
        os.environ.clear()
        os.environ.update(self.env)
        for name in ask["with"]:
            module(name, zlib.decompress(self.kept[name]).decode())
        file = ask["name"] + ".py"
        sys.argv = [file] + ask["args"]
        main = type(sys)("__main__")
        sys.modules["__main__"] = main
        main.__dict__["__file__"] = file
        code = 0
        try:
            execute(zlib.decompress(self.kept[ask["name"]]).decode(), file, main)
        except SystemExit as error:
            if isinstance(error.code, str):
                os.write(2, error.code.encode("utf-8", "replace") + b"\n")
            code = error.code if isinstance(error.code, int) else 1 if error.code else 0
        except BaseException:  # the edge of a process
            import traceback

            traceback.print_exc()
            code = 1
        leave = getattr(sys.modules.get("threading"), "_shutdown", None)
        if leave is not None:
            leave()  # threads that the collector wants to wait for
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        return code


# --- helpers ----------------------------------------------------------------------------------


def module(name: str, source: str) -> "ModuleType":
    """A module made of a text, importable by its name."""
    made = type(sys)(name)
    sys.modules[name] = made
    execute(source, name + ".py", made)
    return made


def execute(source: str, file: str, made: "ModuleType", part: int = PART) -> None:
    """Run a text in a module, part by part where that can be: a compiler takes twenty times the memory of what it is given."""
    flags, codes, line = 0, [], 0
    if "\nfrom __future__ import annotations\n" in source:  # holds for the whole text
        import __future__

        flags = __future__.annotations.compiler_flag
    try:
        for text in parts(source, part):
            codes.append(compile("\n" * line + text, file, "exec", flags, True))
            line += text.count("\n")
    except SyntaxError:  # cut in the middle of something
        codes = [compile(source, file, "exec", flags, True)]
    for code in codes:
        exec(code, made.__dict__)


def parts(source: str, size: int = PART) -> "list[str]":
    """A text cut before statements of its top level, `size` characters or a little more each."""
    out = [""]
    for block in source.split("\n\n"):
        if len(out[-1]) > size and block.lstrip("\n")[:1] not in ("", " ", ")", "]", "}", "#"):
            out.append("")
        out[-1] += block + "\n\n"
    return out


def environment(keep: "list[str]", folders: "list[str]") -> "dict[str, str]":
    """What a child gets of the environment here: as `probes.live_host.environment`."""
    env = {name: os.environ[name] for name in keep if name in os.environ}
    path = [f for f in env.get("PATH", "").split(os.pathsep) if f]
    path += [f for f in folders if f not in path]
    env.update({"PATH": os.pathsep.join(path), "LC_ALL": "C.UTF-8", "TERM": "dumb"})
    return env


def found(name: str, path: str) -> "str | None":
    """As shutil.which, which would cost its imports."""
    places = (
        [name] if os.path.dirname(name) else [os.path.join(f, name) for f in path.split(os.pathsep)] if name else []
    )
    for place in places:
        try:
            if os.path.isfile(place) and os.access(place, os.X_OK):
                return place
        except ValueError:
            return None
    return None


def write_all(handle: int, data: bytes) -> None:
    """Write to a pipe of a child's own, which waits for nobody else."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def signal_group(group: int, number: int, pid: "int | None") -> None:
    """Signal a child and all that it started; `pid` is told on its own while it may not yet lead its group."""
    for send, whom in ((os.killpg, group), (os.kill, pid)):
        try:
            if whom is not None:
                send(whom, number)
            return
        except OSError:
            continue


def start_time(pid: int) -> str:
    """Field 22 of /proc/PID/stat; as `probes._children.start_time`."""
    return (stat("/proc/%d/stat" % pid) + [""] * 20)[19]


def where(pid: int) -> str:
    """The state of a process and the kernel function that it sleeps in; as `probes._children.where`."""
    fields = stat("/proc/%d/stat" % pid)
    if not fields:
        return "it is gone from /proc"
    function = text("/proc/%d/wchan" % pid).strip()
    return "state " + fields[0] + (" in " + function if function not in ("", "0") else "")


def stat(path: str) -> "list[str]":
    """Fields of a stat file from the third on: the second is a name that may hold anything."""
    return text(path).rpartition(")")[2].split()


def text(path: str) -> str:
    """A small file of the kernel's; empty when it cannot be read."""
    try:
        with open(path, errors="replace") as stream:
            return stream.read(CHUNK)
    except (OSError, ValueError):
        return ""


def now_ns() -> int:
    """ns since 1970 UTC; time.time_ns came with Python 3.7."""
    return int(getattr(time, "time_ns", lambda: time.time() * 1e9)())


def user() -> str:
    """The name of the user, from the machine's own table: a directory service may hang."""
    for line in text("/etc/passwd").splitlines():
        fields = line.split(":")
        if len(fields) > 2 and fields[2] == str(os.geteuid()):
            return fields[0]
    return os.environ.get("LOGNAME", "")


def container() -> str:
    """What kind of container this is in; empty when nothing says so."""
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes"
    for path, kind in (("/run/.containerenv", "podman"), ("/.dockerenv", "docker")):
        if os.path.exists(path):
            return kind
    groups = text("/proc/1/cgroup")
    kinds = (("kubepods", "kubernetes"), ("docker", "docker"), ("libpod", "podman"), ("lxc", "lxc"))
    return next((kind for word, kind in kinds if word in groups), "")


def main(start: "dict[str, Any]") -> None:
    """Say hello and answer until the line ends; leave nothing behind."""
    os.chdir("/")  # hold no file system
    far = Far(start)
    os.write(1, start["mark"].encode() + b"\n")
    far.say({
        "hello": VERSION, "time": now_ns(), "host": os.uname().nodename, "python": list(sys.version_info[:3]), "uid": os.geteuid(),
        "user": user(), "container": container(), "boot": text("/proc/sys/kernel/random/boot_id").strip(),
    })  # fmt: skip
    code = 0
    try:
        far.run()
    except BaseException as error:  # a fault of ours: its last line is what is told
        code = 1
        os.write(2, ("%s: %s\n" % (type(error).__name__, error)).encode("utf-8", "replace"))
    finally:
        for job in far.jobs.values():
            if job.end is None:  # one that has left may have left something running
                signal_group(job.pid, signal.SIGKILL, None if job.reaped else job.pid)
        os._exit(code)
