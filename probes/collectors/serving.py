"""Prints what the inference servers of this machine say of themselves, raw, as one JSON document (``gpudiag/serving/1``).

Run as ``python -I -B serving.py --deadline SECONDS [--root DIR] [--between SECONDS]``. Python 3.8 and later, standard
library only. A server is recognised by its command line (vLLM, SGLang, tritonserver, text-generation-router). Its
metrics page is read over loopback (``GET /metrics``, nothing else is asked), twice, a second apart; of the page only the
lines of the server's own series are kept. Of a command line only the numbers and switches of `OPTIONS` are told.

The port is one at which the server listens: to know it takes the rights to see its open files, otherwise the port of its
command line, or its usual one, is tried where somebody listens. A server in a network namespace of its own is asked from
there, which takes root. What does not answer within a second is said.

``--root DIR`` is put in front of ``/proc``: a mounted host, a recorded tree.
"""

from __future__ import annotations

# Thousands of files are read: pathlib would cost more than the reads.
# ruff: noqa: PTH115, PTH116, PTH208
import argparse
import errno
import json
import os
import re
import socket
import sys
import threading
import time

TYPE_CHECKING = False  # importing typing would cost a tenth of the start
if TYPE_CHECKING:
    from typing import Any

SCHEMA = "gpudiag/serving/1"
BETWEEN = 1.0  # seconds between the two readings
LIMIT = 1.0  # seconds for one answer: a page is made in milliseconds
MARGIN = 0.3  # seconds before the deadline at which the document is written
MOST = 16  # servers that are asked
FAMILY = 32  # processes of one server
PAGE = 8 << 20  # bytes of one answer
TRIED = 4  # ports of one server
CLONE_NEWNET = 0x40000000
PF_KTHREAD = 0x00200000
LISTEN = "0A"

METRICS_PORTS = {"vllm": 8000, "sglang": 30000, "triton": 8002, "tgi": 3000}
PORT_OPTIONS = {
    "vllm": ("--port",),
    "sglang": ("--port",),
    "triton": ("--metrics-port",),
    "tgi": ("--prometheus-port", "--port", "-p"),
}
# The whole of what is told of a command line: what follows is a number, or nothing.
OPTIONS = (
    "--max-num-seqs", "--max-num-batched-tokens", "--max-model-len", "--gpu-memory-utilization",
    "--tensor-parallel-size", "--data-parallel-size", "--pipeline-parallel-size", "--enforce-eager",
    "--enable-chunked-prefill", "--no-enable-chunked-prefill", "--enable-prefix-caching", "--no-enable-prefix-caching",
    "--max-running-requests", "--chunked-prefill-size", "--mem-fraction-static", "--tp-size", "--dp-size",
    "--disable-cuda-graph", "--disable-radix-cache", "--enable-metrics", "--max-concurrent-requests",
    "--max-batch-size", "--max-batch-total-tokens", "--allow-metrics",
)  # fmt: skip
NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,6})?|true|false|True|False")
KEPT = re.compile(rb"(?:# TYPE )?(?:vllm:|sglang:|tgi_|nv_|process_start_time_seconds)")
LENGTH = re.compile(rb"(?i)\r\ncontent-length:[ \t]{0,8}(\d{1,12})(?:\r\n|$)")
MODULE = re.compile(
    r"(?:^|[/.])(?:(vllm)[/.]entrypoints[/.](?:openai[/.])?api_server|(sglang)[/.]launch_server)(?:\.py)?$"
)


def read(path: str, most: int = 1 << 16) -> bytes:
    """The start of a file. OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        parts = []
        left = most
        while left > 0:
            part = os.read(fd, left)
            if not part:
                break
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    finally:
        os.close(fd)


def said(error: OSError) -> str:
    """An OS error as text: its name, then the kernel's words."""
    return f"{errno.errorcode.get(error.errno or 0, error.errno)}: {error.strerror or error}"


# --- which processes ---------------------------------------------------------------------------


def engine_of(words: list[str]) -> str:
    """Which server a command line starts; empty for none, and for the nodes of one that serve nobody themselves."""
    rank = option(words, "--node-rank")
    if "--headless" in words or (re.fullmatch("[0-9]{1,9}", rank) and int(rank) > 0):
        return ""
    for i, word in enumerate(words[:5]):
        name = word.rsplit("/", 1)[-1]
        if name == "tritonserver":
            return "triton"
        if name.startswith("text-generation-router"):
            return "tgi"
        if name in ("vllm", "sglang") and words[i + 1 : i + 2] == ["serve"]:
            return name
        found = MODULE.search(word) if word.endswith((".py", "launch_server")) or words[i - 1] == "-m" else None
        if found:
            return found[1] or found[2]
        if i and word.startswith("-") and word not in ("-m", "-u", "-I", "-B", "-E", "-s", "-O", "-OO"):
            return ""  # options of another program
    return ""


def options_of(words: list[str]) -> dict[str, str]:
    """The options of `OPTIONS` and their numbers; a switch has an empty text."""
    out: dict[str, str] = {}
    for word, after in zip(words, [*words[1:], ""]):  # noqa: B905 - Python 3.8
        name, equals, value = word.replace("_", "-").partition("=") if word.startswith("--") else (word, "", "")
        if name in OPTIONS:
            value = value if equals else after
            out[name] = value if NUMBER.fullmatch(value) else ""
    return out


def option(words: list[str], name: str) -> str:
    """The text behind an option of a command line; empty when it is not there."""
    for word, after in zip(words, [*words[1:], ""]):  # noqa: B905 - Python 3.8
        if word == name:
            return after
        if word.startswith(name + "="):
            return word[len(name) + 1 :]
    return ""


def port_of(words: list[str], engine: str) -> int:
    """The port that a command line names; 0 when it names none."""
    for wanted in PORT_OPTIONS[engine]:
        value = option(words, wanted)
        if re.fullmatch("[0-9]{1,5}", value) and 0 < int(value) < 65536:
            return int(value)
    return 0


class Processes:
    """All processes: their parents, and the command lines of those that may be servers."""

    def __init__(self, proc: str) -> None:
        self.proc = proc
        self.parents: dict[int, int] = {}
        self.starts: dict[int, int] = {}  # clock ticks after the boot
        self.words: dict[int, list[str]] = {}
        self.kernel = False  # threads of the kernel are seen: so is the whole machine
        for name in os.listdir(proc):
            if name.isdigit():
                self._add(int(name))

    def _add(self, pid: int) -> None:
        try:
            raw = read(f"{self.proc}/{pid}/cmdline", 1 << 15)
            fields = read(f"{self.proc}/{pid}/stat", 2048).rsplit(b")", 1)[1].split()
            self.parents[pid], self.starts[pid] = int(fields[1]), int(fields[19])
            self.kernel = self.kernel or bool(int(fields[6]) & PF_KTHREAD)
        except (OSError, ValueError, IndexError):
            return
        if (
            b"vllm" in raw
            or raw.startswith(b"VLLM::")
            or b"sglang" in raw
            or b"tritonserver" in raw
            or b"text-generation" in raw
        ):
            self.words[pid] = raw.decode("utf-8", "replace").rstrip("\0").split("\0")

    def servers(self) -> list[tuple[int, str]]:
        """The front processes of servers: those below another one are its workers."""
        found = {pid: engine for pid in sorted(self.words) if (engine := engine_of(self.words[pid]))}
        return [(pid, engine) for pid, engine in found.items() if not self._below(pid, found)][:MOST]

    def _below(self, pid: int, others: dict[int, str]) -> bool:
        for _ in range(16):
            pid = self.parents.get(pid, 0)
            if pid in others:
                return True
            if pid <= 1:
                return False
        return False

    def family(self, pid: int) -> list[int]:
        """A server's processes. What TGI computes with are children of its launcher, beside the router."""
        parent = self.parents.get(pid, 0)
        first = self.words.get(parent, [""])[0].rsplit("/", 1)[-1]
        top = parent if first.startswith("text-generation-launcher") else pid
        kept = [top]
        for one in kept:  # grows while it is walked through
            kept += [p for p, above in self.parents.items() if above == one and p not in kept]
            if len(kept) >= FAMILY:
                break
        return [pid, *sorted(p for p in kept[:FAMILY] if p != pid)]

    def ticks(self, pids: list[int]) -> dict[str, int]:
        """CPU time of the main threads, in clock ticks."""
        out: dict[str, int] = {}
        for pid in pids:
            try:
                fields = read(f"{self.proc}/{pid}/task/{pid}/stat", 2048).rsplit(b")", 1)[1].split()
                out[str(pid)] = int(fields[11]) + int(fields[12])
            except (OSError, ValueError, IndexError):
                continue
        return out

    def fronts(self, family: list[int]) -> list[int]:
        """Those of a server's processes that talk to clients: the first, or the API servers that vLLM starts beside it."""
        more = [p for p in family[1:] if self.words.get(p, [""])[0].startswith("VLLM::APIServer")]
        return more or family[:1]

    def age(self, pid: int) -> float | None:
        """Seconds since a process was started."""
        try:
            up = float(read(self.proc + "/uptime", 64).split()[0])
        except (OSError, ValueError, IndexError):
            return None
        return round(max(0.0, up - self.starts[pid] / os.sysconf("SC_CLK_TCK")), 1)


# --- where it listens --------------------------------------------------------------------------


def listening(proc: str, pid: int | str) -> dict[int, tuple[str, str]]:
    """Ports at which anybody listens in the network namespace of `pid`: the socket's inode, the address to ask. OSError."""
    found: dict[int, tuple[str, str]] = {}
    for name, loopback in (("tcp6", "::1"), ("tcp", "127.0.0.1")):
        try:
            rows = read(f"{proc}/{pid}/net/{name}", 1 << 20).decode("ascii", "replace").splitlines()[1:]
        except OSError:
            if name == "tcp":
                raise
            continue
        for row in rows:
            words = row.split()
            if len(words) < 10 or words[3] != LISTEN:
                continue
            where, _, port = words[1].rpartition(":")
            try:
                host, number = address(where, loopback), int(port, 16)
            except ValueError:
                continue
            if host:
                found[number] = (words[9], host)
    return found


def address(text: str, loopback: str) -> str:
    """The loopback address that reaches a listener at `text`, in the kernel's hex; empty when none does.

    A server that listens at one address of the machine only is asked there: that is the machine itself as well.
    """
    raw = bytes.fromhex(text)
    if not any(raw):
        return "127.0.0.1" if loopback == "127.0.0.1" else "::1"
    if sys.byteorder == "little":
        raw = b"".join(raw[i : i + 4][::-1] for i in range(0, len(raw), 4))
    try:
        return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw)
    except (OSError, ValueError):
        return ""


def sockets(proc: str, pids: list[int]) -> set[str] | None:
    """Inodes of the sockets that processes hold; None where their open files may not be seen."""
    held: set[str] = set()
    seen = False
    for pid in pids:
        folder = f"{proc}/{pid}/fd"
        try:
            names = os.listdir(folder)[:8192]
        except OSError:
            continue
        seen = True
        for name in names:
            try:
                link = os.readlink(folder + "/" + name)
            except OSError:
                continue
            if link.startswith("socket:["):
                held.add(link[8:-1])
    return held if seen else None


def ports(proc: str, pids: list[int], words: list[str], engine: str) -> dict[str, Any]:
    """The ports to try, the likeliest first, with their addresses; why there are none."""
    try:
        rows = listening(proc, pids[0])
    except OSError as error:
        return {"error": said(error)}
    held = sockets(proc, pids)
    likely = port_of(words, engine) or METRICS_PORTS[engine]
    if held is None:
        return {"ports": [[likely, rows[likely][1]]] if likely in rows else [], "guessed": True}
    own = {port: host for port, (inode, host) in rows.items() if inode in held}
    order = sorted(own, key=lambda port: (port != likely, port))[:TRIED]
    return {"ports": [[port, own[port]] for port in order]}


# --- the page ----------------------------------------------------------------------------------


def fetch(host: str, port: int, until: float) -> dict[str, Any]:
    """One metrics page: its status and lines, or why there is none."""
    call = f"http://[{host}]:{port}/metrics" if ":" in host else f"http://{host}:{port}/metrics"
    limit = max(0.05, min(LIMIT, until - time.monotonic()))
    answer: dict[str, Any] = {"call": call}
    try:
        data = received(host, port, limit)
    except socket.timeout:  # noqa: UP041 - before Python 3.10 another class than TimeoutError
        return dict(answer, hung=call, seconds=round(limit, 2))
    except OSError as error:
        return dict(answer, error=said(error))
    answer.update(at_ns=time.time_ns(), monotonic_ns=time.monotonic_ns())
    head, _, body = data.partition(b"\r\n\r\n")
    first = head.split(b"\r\n", 1)[0].split()
    if len(first) < 2 or not first[0].startswith(b"HTTP/") or not first[1].isdigit():
        return dict(answer, error="EPROTO: the answer is not HTTP")
    answer["status"] = int(first[1][:4])
    if b"transfer-encoding: chunked" in head.lower():
        body = dechunked(body)
    length = LENGTH.search(head)
    if len(data) > PAGE or (length and len(body) < int(length[1])):
        answer["cut"] = True
        body = body[: body.rfind(b"\n") + 1]  # what stands behind may be half a number
    kept = [one for one in body.splitlines() if KEPT.match(one)]
    answer["lines"] = [one[:4096].decode("utf-8", "replace") for one in kept]
    return answer


def received(host: str, port: int, limit: float) -> bytes:
    """What a server answers within `limit` seconds, until it hangs up, at most about `PAGE` bytes. OSError, socket.timeout."""
    until = time.monotonic() + limit
    parts: list[bytes] = []
    size = 0
    with socket.create_connection((host, port), timeout=limit) as line:
        line.sendall(f"GET /metrics HTTP/1.0\r\nHost: localhost:{port}\r\nAccept: text/plain\r\n\r\n".encode())
        while size <= PAGE:
            left = until - time.monotonic()
            if left <= 0:
                raise socket.timeout  # noqa: UP041
            line.settimeout(left)
            part = line.recv(1 << 16)
            if not part:
                break
            parts.append(part)
            size += len(part)
    return b"".join(parts)


def dechunked(body: bytes) -> bytes:
    """What an answer in chunks holds, as far as it is whole."""
    parts: list[bytes] = []
    at = 0
    while True:
        end = body.find(b"\r\n", at)
        size = body[at:end].split(b";")[0].strip() if end >= 0 else b""
        try:
            length = int(size, 16) if size else 0
        except ValueError:
            length = 0
        if length <= 0:
            return b"".join(parts)
        parts.append(body[end + 2 : end + 2 + length])
        at = end + 2 + length + 2


class Server(threading.Thread):
    """Asks one server, from its network namespace."""

    def __init__(self, processes: Processes, pid: int, engine: str, between: float, until: float) -> None:
        super().__init__(daemon=True)
        self.found: dict[str, Any] = {}
        self._processes, self._pid, self._engine = processes, pid, engine
        self._between, self._until = between, until
        self.start()

    def run(self) -> None:
        """Fills `found`; what fails stands there as an error."""
        try:
            self._look()
        except OSError as error:
            self.found["error"] = said(error)

    def _look(self) -> None:
        pid, all_, words = self._pid, self._processes, self._processes.words[self._pid]
        family = all_.family(pid)
        self.found.update(engine=self._engine, pid=pid, pids=family, age=all_.age(pid), options=options_of(words))
        there = ports(all_.proc, family, words, self._engine)
        self.found.update({k: v for k, v in there.items() if k != "ports"})
        self.found["port"] = port_of(words, self._engine) or METRICS_PORTS[self._engine]  # until one has answered
        self.found["listens"] = [port for port, _ in there.get("ports", [])]
        for name, how in (("--ssl-certfile", "TLS only"), ("--uds", "at a Unix socket")):
            if option(words, name):
                self.found["error"] = f"EPROTONOSUPPORT: it serves {how}, give its page with --input"
                return
        if not there.get("ports"):
            return
        enter(all_.proc, pid, [port for port, _ in there["ports"]])
        fronts = all_.fronts(family)
        ticks = [all_.ticks(fronts)]
        begun = time.monotonic()
        answer, port, host = self._first(there["ports"])
        self.found["port"], self.found["readings"] = port, [answer]
        if not answer.get("lines"):
            return
        wait = begun + self._between - time.monotonic()
        if time.monotonic() + max(0.0, wait) + 0.2 > self._until:
            return
        time.sleep(max(0.0, wait))
        again = fetch(host, port, self._until)
        ticks.append(all_.ticks(fronts))
        self.found["readings"] = [answer, again]
        self.found.update(ticks=ticks, ticks_seconds=round(time.monotonic() - begun, 4))

    def _first(self, candidates: list[list[Any]]) -> tuple[dict[str, Any], int, str]:
        """The first port that tells metrics; where none does, what the likeliest one answered."""
        tried = []
        for port, host in candidates:
            answer = fetch(host, port, self._until)
            if answer.get("lines"):
                return answer, port, host
            tried.append((answer, port, host))
        return tried[0]


def enter(proc: str, pid: int, wanted: list[int]) -> None:
    """This thread into the network namespace of a server, for good; nothing when it is there. OSError when it may not.

    Which namespace another user's process is in may not be seen; what listens at the ports `wanted` there and here may.
    """
    path = f"{proc}/{pid}/ns/net"
    try:
        if os.stat(path).st_ino == os.stat("/proc/thread-self/ns/net").st_ino:
            return
    except FileNotFoundError:
        return  # a recorded tree
    except PermissionError:
        there, here = listening(proc, pid), listening("/proc", "self")
        if all(port in here and there.get(port) == here[port] for port in wanted):
            return
        raise
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(fd, CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number) + " (its network namespace)")
    finally:
        os.close(fd)


def hostname(root: str) -> str:
    """What the machine below `root` calls itself."""
    try:
        return read(root + "/proc/sys/kernel/hostname").decode("utf-8", "replace").strip()
    except OSError:
        return "" if root else socket.gethostname()


def main() -> None:
    """Print the document."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--deadline", type=float, default=5.0)
    parser.add_argument("--root", default="")
    parser.add_argument("--between", type=float, default=BETWEEN)
    wanted = parser.parse_args()
    until = time.monotonic() + max(0.3, wanted.deadline - MARGIN)
    document: dict[str, Any] = {"schema": SCHEMA, "host": hostname(wanted.root.rstrip("/")), "at_ns": time.time_ns()}
    document["hertz"] = os.sysconf("SC_CLK_TCK")
    try:
        processes = Processes(wanted.root.rstrip("/") + "/proc")
    except OSError as error:
        document["error"] = said(error)
        print(json.dumps(document))
        return
    document.update(looked_at=len(processes.parents), kernel=processes.kernel)
    asked = [Server(processes, pid, engine, wanted.between, until - 0.1) for pid, engine in processes.servers()]
    for one in asked:
        one.join(max(0.0, until - time.monotonic()))
    document["servers"] = [dict(one.found) for one in asked if one.found]
    print(json.dumps(document, indent=1), flush=True)
    os._exit(0)  # a thread that still waits must not keep the process


if __name__ == "__main__":
    main()
