"""What a capture is made of: targets, a window, parts, what they cost, and what became of each.

Times are ns; ``monotonic`` is CLOCK_MONOTONIC of this machine, to which all parts of a capture are aligned.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from knowledge.language import Text
from knowledge.record import dataclass

SCHEMA = "gpudiag/capture/1"
EVENTS = 50_000  # of the profiler in one capture: the stop stalls the job for about 8 us an event (facts of capture)
STACK_RATE = 50  # Hz
LEAST_MS, MOST_MS = 100, 10_000


class Item(StrEnum):
    """What can be captured (``--with``)."""

    STACKS = "stacks"  # Python stacks of all threads over the window: py-spy, nothing is injected
    CPU = "cpu"  # threads, I/O, cgroup, network, GPU readings over the window: /proc and NVML, nothing is touched
    OFFCPU = (
        "offcpu"  # what threads wait for in the kernel: perf or bpftrace where they are; only when asked for by name
    )
    TORCH = "torch"  # operators: torch.profiler, started in the target
    KERNELS = "kernels"  # device work: the same profiler with CUDA
    MEMORY = "memory"  # torch's statistics of its CUDA allocator, asked for in the target
    SHAPES = "shapes"  # operators with the shapes of their inputs: dear, so only in short captures
    FLOPS = "flops"  # floating point operations: computed from shapes afterwards
    LOSS = "loss"  # a named local at the anchor, each iteration
    GRADNORM = "gradnorm"  # the norm of the gradients at the anchor, each iteration


GENTLE = frozenset({Item.STACKS, Item.CPU, Item.OFFCPU})  # nothing runs in the target
INJECTED = frozenset(Item) - GENTLE


class Rung(StrEnum):
    """How something was got out of the target; see docs/profile.md."""

    PROC = "proc"
    PY_SPY = "py-spy"
    PERF = "perf"
    BPF = "bpftrace"
    ENDPOINT = "endpoint"  # the profiler endpoint of vLLM or SGLang
    DYNOLOG = "dynolog"  # the job listens for dynolog (KINETO_USE_DAEMON=1)
    REMOTE_EXEC = "remote-exec"  # sys.remote_exec, Python 3.14
    PENDING_CALL = "pending-call"  # ptrace of one thread, Py_AddPendingCall
    GDB = "gdb"  # the same call through gdb


@dataclass(frozen=True, slots=True)
class Window:
    """How long is captured: a time, or iterations between two anchors."""

    duration_ns: int = 2_000_000_000
    iterations: int = 0  # 0: the duration counts
    skip: int = 0  # iterations to let pass first
    anchor: str = ""  # module:function; empty: Optimizer.step, or the engine's step of vLLM and SGLang

    @property
    def by_iterations(self) -> bool:
        """Whether iterations count, and not the time."""
        return self.iterations > 0


@dataclass(frozen=True, slots=True)
class Python:
    """The interpreter in a process."""

    version: tuple[int, int]  # (3, 11)
    release: str = ""  # "3.11.7" where that is told
    library: str = ""  # the mapped file that holds its symbols, as the process names it
    torch: str = "absent"  # absent, loaded (libtorch is mapped)
    cuda: bool = False  # libcuda is mapped


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a capture, identified by pid and start: a pid alone is used again."""

    pid: int  # in our pid namespace
    start: int  # clock ticks since boot (field 22 of /proc/PID/stat)
    name: str  # comm
    command: tuple[str, ...] = ()
    uid: int = 0  # effective, as we see it
    user: str = ""
    state: str = ""  # R, S, D, Z, T, t
    tracer: int = 0  # TracerPid
    threads: int = 0
    parent: int = 0
    inner_pid: int = 0  # its pid in its own namespace (last of NSpid)
    contained: bool = False  # another pid or mount namespace than ours
    container: str = ""  # id, where the cgroup names one
    python: Python | None = None  # None: no Python interpreter is mapped

    @property
    def root(self) -> str:
        """Where its file system is seen from here."""
        return f"/proc/{self.pid}/root"


@dataclass(frozen=True, slots=True)
class Target:
    """A process that is captured, and what it is in its job."""

    process: Process
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    job: str = ""  # identity of the job on this node, as `process.in_job` names it
    gpus: tuple[str, ...] = ()  # PCI addresses, dddd:bb:dd.f
    why: str = ""  # what it was found by: "--pid 4242", "--name train.py"
    helpers: tuple[Process, ...] = ()  # its children that run Python: workers of a data loader
    notes: tuple[Text, ...] = ()  # what could not be told of it, and why: the environment of another user's process


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something is not done to a target, and what would help."""

    code: str  # "tracer", "state-d", "no-permission", ...: stable, for tests and JSON
    why: Text
    remedy: Text = field(default_factory=lambda: Text("", ""))
    forced: bool = False  # whether --force would do it all the same


@dataclass(frozen=True, slots=True)
class Cost:
    """What a part costs the target, stated before consent; figures from docs/profile.md."""

    item: Item
    says: Text
    rate_percent: float = 0.0  # loss of the target's rate within the window, at most
    stall_ms: float = 0.0  # longest stop of the target, at most


class Outcome(StrEnum):
    """What became of a part."""

    OK = "ok"
    PARTIAL = "partial"  # something was got, and something is missing: `why` says what
    REFUSED = "refused"
    DECLINED = "declined"  # consent was not given
    FAILED = "failed"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class Part:
    """What became of one item at one target."""

    item: Item
    outcome: Outcome
    rung: Rung | None = None
    why: Text = field(default_factory=lambda: Text("", ""))
    remedy: Text = field(default_factory=lambda: Text("", ""))
    file: str = ""  # below the capture's folder
    began: int = 0  # monotonic
    ended: int = 0


@dataclass(frozen=True, slots=True)
class Vital:
    """How a target stood at one moment: what `aftermath` compares."""

    at: int  # monotonic
    state: str
    tracer: int
    threads: int
    descriptors: int  # -1: could not be counted
    cpu_ticks: int  # utime + stime
    switches: int  # voluntary + involuntary of the main thread
    resident: int  # bytes
    alive: bool = True
    thread_names: tuple[str, ...] = ()  # sorted, as many as there are threads; cut at 512


@dataclass(frozen=True, slots=True)
class Aftermath:
    """Whether a target was left as it was found, and what was left behind."""

    before: Vital
    after: Vital
    left: tuple[Text, ...] = ()  # what is known to stay: a thread of kineto, memory of the profiler
    worries: tuple[Text, ...] = ()  # what should not be: stopped, traced, descriptors or threads that stay
    iteration_before_ns: int | None = None  # median, where iterations were counted
    iteration_after_ns: int | None = None
    longest_ns: int | None = None  # longest iteration within the window

    @property
    def clean(self) -> bool:
        """Nothing that should not be."""
        return not self.worries
