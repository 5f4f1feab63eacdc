"""Runs one active test on idle GPUs and prints what came of it, raw, as one JSON document (``gpudiag/active/1``).

Run as ``python -I -B active.py --deadline SECONDS --test NAME [--gpus 0,1] [--beside JSON] -- PROGRAM ARGUMENTS``.
Python 3.8 and later, standard library only. It is the only collector that loads a machine: nobody starts it
without consent (`assistant/active`, or a yes in a conversation), and it starts no program but those of `PROGRAMS`.

It says why by code and data, which `probes/parse/_active_reasons.py` puts in words.

Before it starts anything it looks twice whether the GPUs are idle: no compute process, utilisation and memory in use
below ``--idle-utilization`` and ``--idle-memory``. What cannot be read is not idle. While the test runs it goes on
looking every ``--every`` seconds; when somebody else's process appears, the test is ended. The looks are those of
``nvidia-smi --query-gpu`` and ``--query-compute-apps``, and stand in the document as they were printed.

The test lives in the process group of this program, so that who kills the group kills all of it; what leaves the group
is found as a descendant (this program is their subreaper). At the deadline, on SIGTERM and SIGINT it ends the test
(SIGTERM, five seconds, SIGKILL) and prints what there is. Lines of the test go to standard error as they come, each as
one JSON object, for whoever shows progress.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

SCHEMA = "gpudiag/active/1"
PROGRAMS = frozenset({"dcgmi", "nvbandwidth", "all_reduce_perf", "ib_write_bw", "gpu_burn", "gpu-burn"})
OTHER_NAMES = {"gpu_burn": "gpu-burn"}  # as packages call it
# Where these tools are built or unpacked, beside PATH.
FOLDERS = ("/usr/local/bin", "/usr/bin", "/opt/nccl-tests/build", "/usr/local/nccl-tests/build", "/opt/nvbandwidth",
           "/opt/gpu-burn", "/opt/gpu_burn", "/usr/local/gpu-burn")  # fmt: skip
GPU_FIELDS = "index,uuid,pci.bus_id,name,utilization.gpu,memory.used,memory.total,mig.mode.current,temperature.gpu,power.draw,clocks.sm"
REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")  # the second before driver R535
APP_FIELDS = "gpu_uuid,pid,process_name,used_memory"
LOOK_LIMIT = 20.0  # seconds for one call of nvidia-smi; opening GPUs without persistence mode takes seconds
BLIND_AFTER = 3  # looks in a row that gave nothing: then nobody knows any more whose GPU it is
GRACE = 5.0  # seconds between SIGTERM and SIGKILL: the diagnostic's service has to end its own children
CAP = 8 << 20  # bytes of output that are kept: half of them its beginning, half its end
ERRORS = 64 << 10
LOOKS = 400  # that the document holds
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


class Blind(Exception):
    """The GPUs could not be looked at, for a reason."""

    def __init__(self, code: str, **data: str) -> None:
        self.reason = dict(data, code=code)
        super().__init__(str(self.reason))


class Ending:
    """What ends a test before its end: a signal, a job, the deadline."""

    def __init__(self) -> None:
        self.outcome = ""
        self.reason: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._parent = os.getppid()

    def orphaned(self) -> None:
        """Nobody waits any more: a test does not outlive who asked for it."""
        if os.getppid() != self._parent:
            self.set("cancelled", "orphaned")

    def set(self, outcome: str, code: str, **data: Any) -> None:
        """The first reason counts."""
        with self._lock:
            if not self.outcome:
                self.outcome, self.reason = outcome, dict(data, code=code)


def options(argv: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("--deadline", type=float, required=True)
    add("--root", default="")
    add("--test", default="")
    add("--look", action="store_true")  # only whether the GPUs are idle: nothing is started
    add("--gpus", default="")  # indices of nvidia-smi; empty: all
    add("--allow", default="")  # names of processes that are the test's own though nobody here started them
    add("--beside", default="")  # JSON list: a second program, started first, ended last
    add("--every", type=float, default=2.0)
    add("--idle-utilization", type=float, default=5.0)
    add("--idle-memory", type=float, default=1024.0)
    add("argv", nargs="*")
    return parser.parse_args(argv)


# --- looking ------------------------------------------------------------------------------


def smi(query: str, fields: str) -> list[dict[str, str]]:
    """Rows of one query of nvidia-smi. Blind when it does not answer."""
    program = find("nvidia-smi")
    if not program:
        raise Blind("no-smi")
    argv = [program, f"--query-{query}={fields}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=LOOK_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        raise Blind("smi-late", seconds=f"{LOOK_LIMIT:g}") from None
    except OSError as error:
        raise Blind("smi-not-started", error=str(error)[:300]) from None
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        said = (text.strip() or done.stderr.decode("utf-8", "replace").strip())[:300]
        raise Blind("smi-failed", exit=str(done.returncode), said=said)
    names = fields.split(",")
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if row]
    if query == "compute-apps":  # a process may have commas in its name
        rows = [[r[0], r[1], ", ".join(r[2:-1]), r[-1]] for r in rows if len(r) >= len(names)]
    return [dict(zip(names, row)) for row in rows if len(row) == len(names)]  # noqa: B905 - Python 3.8


class Eyes:
    """Looks at the GPUs, as often as it is asked to."""

    def __init__(self, wanted: str) -> None:
        self.wanted = frozenset(w for w in wanted.split(",") if w)
        self._reasons = list(REASONS)

    def look(self) -> dict[str, Any]:
        """The chosen GPUs and who computes on them now."""
        while True:
            fields = ",".join([GPU_FIELDS, *self._reasons[:1]])
            try:
                gpus = smi("gpu", fields)
                break
            except Blind as error:
                if not self._reasons or "not a valid field" not in str(error):
                    raise
                self._reasons.pop(0)
        if self.wanted:
            gpus = [g for g in gpus if g["index"] in self.wanted]
            lost = sorted(self.wanted - {g["index"] for g in gpus})
            if lost:
                raise Blind("no-such-gpu", gpus=", ".join(lost))
        if not gpus:
            raise Blind("no-gpu")
        here = {g["uuid"] for g in gpus}
        return {
            "at": time.time_ns(),
            "gpus": gpus,
            "apps": [a for a in smi("compute-apps", APP_FIELDS) if a["gpu_uuid"] in here],
        }


def number(text: str) -> float | None:
    """A cell as a number; None for ``[N/A]``."""
    try:
        return float(text)
    except ValueError:
        return None


def busy(seen: dict[str, Any], args: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Why GPUs are not idle, by their index; empty when all are."""
    out: dict[str, dict[str, str]] = {}
    for g in seen["gpus"]:
        why: dict[str, str] = {}
        for a in seen["apps"]:
            if a["gpu_uuid"] == g["uuid"] and not why:
                why = {"code": "gpu-process", "pid": a["pid"], "name": a["process_name"][:80]}
        if g["mig.mode.current"] == "Enabled":
            why = why or {"code": "gpu-mig"}
        for field, limit, unit in (
            ("utilization.gpu", args.idle_utilization, "%"),
            ("memory.used", args.idle_memory, "MiB"),
        ):
            value = number(g[field])
            if value is None:
                why = why or {"code": "gpu-untold", "field": field, "said": g[field][:40]}
            elif value > limit:
                told = {"field": field, "value": f"{value:g}", "unit": unit, "limit": f"{limit:g}"}
                why = why or dict(told, code="gpu-load")
        if why:
            out[g["index"]] = dict(why, gpu=g["index"])
    return out


def because(error: Exception) -> dict[str, str]:
    """Why the GPUs could not be looked at."""
    return error.reason if isinstance(error, Blind) else {"code": "smi-not-started", "error": str(error)[:300]}


def stranger(seen: dict[str, Any], allowed: set[str]) -> dict[str, str]:
    """A process that is not the test's; empty when there is none. A process of a name space that cannot be seen from here
    may be the test itself, as the driver numbers it: one for each GPU."""
    ours = family()
    unseen: dict[str, int] = {}
    for app in seen["apps"]:
        pid, name = app["pid"], app["process_name"]
        if pid in ours or name.rsplit("/", 1)[-1] in allowed:
            continue
        if not Path("/proc/" + pid if pid.isdigit() else "/nowhere").exists():
            unseen[app["gpu_uuid"]] = unseen.get(app["gpu_uuid"], 0) + 1
            if unseen[app["gpu_uuid"]] < 2:
                continue
        return {"pid": pid, "name": name[:80]}
    return {}


# --- processes ----------------------------------------------------------------------------


def find(name: str) -> str | None:
    """Where a program lies."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *FOLDERS])
    other = OTHER_NAMES.get(name)
    return shutil.which(name, path=path) or (shutil.which(other, path=path) if other else None)


def family() -> set[str]:
    """This process and all that descend from it."""
    parents: dict[str, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
                parents[entry.name] = stat.rpartition(")")[2].split()[1]
    found, more = {str(os.getpid())}, True
    while more:
        new = {p for p, parent in parents.items() if parent in found} - found
        found, more = found | new, bool(new)
    return found


def bound() -> None:
    """In the child: it does not outlive this program."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def launch(argv: list[str], gpus: list[dict[str, str]], chosen: bool) -> subprocess.Popen[bytes]:
    """Start a program of the list. OSError, ValueError."""
    program = find(argv[0])
    if argv[0] not in PROGRAMS or program is None:
        raise ValueError(f"{argv[0]} is not installed" if argv[0] in PROGRAMS else f"{argv[0]} is no test")
    env = dict(os.environ, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    if chosen:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(g["uuid"] for g in gpus)
    # gpu-burn looks for its kernel in the current folder
    folder = str(Path(program).resolve().parent) if argv[0].startswith("gpu") else "/"
    return subprocess.Popen(
        argv, executable=program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
        cwd=folder, close_fds=True, preexec_fn=bound,  # noqa: PLW1509 - there is no other thread yet
    )  # fmt: skip


def end_all() -> list[str]:
    """End every descendant; those that cannot be ended."""
    for sent, grace in ((signal.SIGTERM, GRACE), (signal.SIGKILL, 2.0)):
        until = time.monotonic() + grace
        told: set[str] = set()
        while True:
            reap()
            left = family() - {str(os.getpid())}
            if not left:
                return []
            for pid in left - told:
                with suppress(OSError):
                    os.kill(int(pid), sent)
            told |= left
            if time.monotonic() >= until:
                break
            time.sleep(0.05)
    return sorted(left)


def reap() -> None:
    """Take note of children that have ended, those of others too."""
    with suppress(OSError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


class Kept:
    """The head and the tail of a stream."""

    def __init__(self, cap: int) -> None:
        self.half, self.head, self.tail, self.lost = cap // 2, b"", b"", 0

    def add(self, part: bytes) -> None:
        """More of it."""
        room = self.half - len(self.head)
        self.head, part = self.head + part[:room], part[room:]
        self.tail += part
        if len(self.tail) > 2 * self.half:
            self.lost += len(self.tail) - self.half
            self.tail = self.tail[-self.half :]

    def text(self) -> str:
        """All that is kept; a line says where something is left out."""
        joint = b"\n[gpudiag: %d bytes in the middle were left out]\n" % self.lost if self.lost else b""
        return (self.head + joint + self.tail).decode("utf-8", "replace")


class Shown:
    """Lines of a stream, told on standard error as they come, a few each second."""

    def __init__(self) -> None:
        self._rest, self._next = b"", 0.0

    def add(self, part: bytes) -> None:
        """More of it: the newest line is told, progress that is printed over itself too."""
        lines = (self._rest + part).replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop()[-4096:]
        whole = [x for x in (*lines, self._rest) if x.strip()]
        if whole and time.monotonic() >= self._next:
            self._next = time.monotonic() + 0.2
            tell({"lines": [x.decode("utf-8", "replace")[:400] for x in whole[-8:]]})


def tell(what: dict[str, Any]) -> None:
    """One line for whoever shows progress."""
    with suppress(OSError, ValueError):
        sys.stderr.write(json.dumps(what) + "\n")
        sys.stderr.flush()


# --- the test -----------------------------------------------------------------------------


def guard(
    eyes: Eyes, args: argparse.Namespace, ending: Ending, over: threading.Event, looks: list[Any], failed: list[Any]
) -> None:
    """Look again and again while the test runs."""
    allowed, blind = {n for n in args.allow.split(",") if n}, 0
    while not over.wait(args.every):
        try:
            seen = eyes.look()
            who = stranger(seen, allowed)
            if who and not over.wait(0.3):  # a child that ended between two readings looks like a stranger
                seen = eyes.look()
                who = stranger(seen, allowed)
        except (Blind, OSError) as error:
            blind += 1
            failed.append(because(error))
            if blind >= BLIND_AFTER:
                ending.set("blind", "gone-blind", because=because(error))
                return
            continue
        blind = 0
        looks.append(seen)
        if len(looks) > LOOKS:
            del looks[1::2]
        if who:
            ending.set("job", "job", **who)
            return


def follow(child: subprocess.Popen[bytes], ending: Ending, until: float) -> tuple[Kept, Kept]:
    """Its output, until it ends or is to be ended."""
    assert child.stdout is not None
    assert child.stderr is not None
    out, errors, shown = Kept(CAP), Kept(ERRORS), Shown()
    with selectors.DefaultSelector() as selector:
        for pipe, kept in ((child.stdout, out), (child.stderr, errors)):
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ, kept)
        last: float | None = None
        while selector.get_map() and (last is None or time.monotonic() < last):
            if time.monotonic() >= until:
                ending.set("timeout", "late")
            ending.orphaned()
            if ending.outcome and last is None:
                end_all()
            if last is None and child.poll() is not None:
                last = time.monotonic() + 0.5  # something that it started may hold the pipe
            for key, _ in selector.select(0.1):
                part = os.read(key.fd, 1 << 16)
                if not part:
                    selector.unregister(key.fileobj)
                    continue
                key.data.add(part)
                if key.data is out:
                    shown.add(part)
    while child.poll() is None and not ending.outcome:  # it has said everything, and goes on
        if time.monotonic() >= until:
            ending.set("timeout", "late")
        ending.orphaned()
        time.sleep(0.05)
    return out, errors


def test(args: argparse.Namespace, ending: Ending, until: float) -> dict[str, Any]:
    """Everything; the document."""
    said: dict[str, Any] = {"schema": SCHEMA, "test": args.test, "argv": args.argv, "began": time.time_ns()}
    beside = json.loads(args.beside) if args.beside else []
    for name in {*args.argv[:1], *beside[:1]}:
        if args.root or name not in PROGRAMS:
            return dict(
                said, outcome="refused", reason={"code": "elsewhere" if args.root else "no-test", "program": name}
            )
        if not find(name):
            return dict(said, outcome="absent", reason={"code": "absent", "program": name})
    if not args.argv and not args.look:
        return dict(said, outcome="refused", reason={"code": "no-program"})
    eyes = Eyes(args.gpus)
    try:
        first = eyes.look()
        taken = busy(first, args)
        if not taken:
            time.sleep(0.5)  # utilisation is a mean over the last second or less: a job between two steps looks idle
            first = eyes.look()
            taken = busy(first, args)
    except (Blind, OSError) as error:
        return dict(said, outcome="blind", reason=because(error))
    said["before"] = first
    reason: dict[str, Any] = next(iter(taken.values()), {})
    if args.look:
        return dict(said, outcome="busy" if taken else "idle", reason=reason, busy=taken)
    if taken or ending.outcome:
        return dict(said, outcome=ending.outcome or "busy", reason=ending.reason or reason)
    try:
        second = launch(beside, first["gpus"], bool(args.gpus)) if beside else None
        if second is not None:
            time.sleep(1.0)  # a server listens by then
        child = launch(args.argv, first["gpus"], bool(args.gpus))
    except (OSError, ValueError) as error:
        end_all()
        return dict(said, outcome="failed", reason={"code": "not-started", "error": str(error)[:300]})
    said["started"] = time.time_ns()
    tell({"started": args.argv})
    over = threading.Event()
    looks: list[Any] = []
    failed: list[Any] = []
    watching = threading.Thread(target=guard, args=(eyes, args, ending, over, looks, failed), daemon=True)
    watching.start()
    out, errors = follow(child, ending, until)
    over.set()
    code = None if ending.outcome else child.poll()
    watching.join(2.0)
    left = end_all()
    said.update(ended=time.time_ns(), exit_code=code, stdout=out.text(), stderr=errors.text(), lost=out.lost, left=left)
    said.update(looks=looks, looks_failed=failed[:20], outcome=ending.outcome or "ended", reason=ending.reason)
    if second is not None and second.stderr is not None:
        with suppress(OSError, ValueError):
            said["beside"] = {
                "argv": beside,
                "stderr": (second.stderr.read() or b"")[:ERRORS].decode("utf-8", "replace"),
            }
    return said


def main() -> None:
    """Print the document."""
    args = options(sys.argv[1:])
    ending = Ending()
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, lambda *_: ending.set("cancelled", "signal"))
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    until = time.monotonic() + max(args.deadline - GRACE - 2.5, args.deadline * 0.5)
    json.dump(test(args, ending, until), sys.stdout)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
