"""What is read from outside over a window: stacks by py-spy, threads and devices by samplers. Nothing in the targets changes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Final, cast

from knowledge.language import Text
from knowledge.text import excerpt
from probes.capture.model import STACK_RATE, Item, Outcome, Part, Rung, Target
from probes.capture.plan import Plan
from probes.live_host import LiveHost

LONGEST: Final = 90.0  # seconds that a recording goes on when nobody ends it: the longest wait for iterations, and some
HELPERS: Final = 16  # loader workers of one target whose stacks are recorded; each takes a py-spy
FROZEN: Final = 800_000_000  # ns of one and the same stack from which a second look is worth its time


class Gentle:
    """The recordings of one capture. `stop` ends all of them, also when `start` was never called or failed."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._host = LiveHost()
        self._stacks: Any = None
        self._samples: Any = None
        self._offcpu: Any = None
        self._stack_documents: dict[str, Any] = {}
        self._threads: dict[str, Any] = {}
        self._gpus: dict[str, Any] | None = None
        self._why = ""

    def start(self) -> None:
        """Begin. Returns when stacks are being read, or cannot be: some tenths of a second."""
        from probes.capture.inject import interpreter
        from probes.capture.offcpu import offcpu
        from probes.capture.readings import samples
        from probes.capture.stacks import stacks

        traced = [p.target for p in self._plan.targets if Item.OFFCPU in p.gentle]
        if traced:
            pids = [pid for t in traced for pid in (t.process.pid, *(h.pid for h in t.helpers[:HELPERS]))]
            launches = any(p.python is not None and p.python.cuda for p in (t.process for t in traced))
            self._offcpu = offcpu.Recording(list(dict.fromkeys(pids)), LONGEST, launches=launches)
            self._offcpu.start()
        listened = [p.target for p in self._plan.targets if Item.STACKS in p.gentle]
        watched = [p.target for p in self._plan.targets if Item.CPU in p.gentle]
        if watched:
            pids = [pid for t in watched for pid in (t.process.pid, *(h.pid for h in t.helpers))]
            runtimes = {
                pid: r for pid in (t.process.pid for t in watched) if (r := _runtime(interpreter, pid)) is not None
            }
            self._samples = samples.Recording(self._host, list(dict.fromkeys(pids)), runtimes=runtimes, longest=LONGEST)
            self._samples.start()
        if listened:
            pids = [pid for t in listened for pid in (t.process.pid, *(h.pid for h in t.helpers[:HELPERS]))]
            self._stacks = stacks.Recording(list(dict.fromkeys(pids)), STACK_RATE, LONGEST)
            self._stacks.start()

    def stop(self) -> None:
        """End all, and take what they have."""
        with ExitStack() as ends:  # each ends whatever becomes of the others
            ends.callback(self._host.close)
            ends.callback(self._take_samples)
            ends.callback(self._take_stacks)
            if self._offcpu is not None:
                self._offcpu.stop()

    def _take_stacks(self) -> None:
        if self._stacks is not None:
            found = self._stacks.stop()
            self._stack_documents = {str(pid): document for pid, document in found.items()}

    def _take_samples(self) -> None:
        if self._samples is not None:
            got = self._samples.stop()
            self._threads, self._gpus = got.threads, got.gpus

    # --- what it gave ---------------------------------------------------------------------------

    def documents(self) -> dict[str, Any]:
        """``stacks``, ``threads``, ``gpus`` and ``offcpu`` of the document."""
        waits = self._offcpu.document if self._offcpu is not None else None
        return {"stacks": self._stack_documents, "threads": self._threads, "gpus": self._gpus, "offcpu": waits}

    def part(self, pid: int, item: Item) -> Part:
        """What became of `item` at process `pid`."""
        return {Item.STACKS: self._of_stacks, Item.CPU: self._of_cpu, Item.OFFCPU: self._of_waits}[item](pid)

    def _of_stacks(self, pid: int) -> Part:
        found = self._stack_documents.get(str(pid)) or {}
        error = excerpt(str(found.get("error") or ""), 300)
        began, ended = (v if isinstance(v := found.get(k), int) else 0 for k in ("began", "ended"))
        sampled = any(t.get("samples") for t in (found.get("threads") or {}).values() if isinstance(t, Mapping))
        if sampled:
            outcome = Outcome.PARTIAL if error else Outcome.OK
            return Part(Item.STACKS, outcome, Rung.PY_SPY, Text(error, error), began=began, ended=ended)
        from probes.capture.stacks import stacks

        refusal = stacks.failure(cast("stacks.StackDoc", found)) if found.get("error") else None
        why = refusal.why if refusal is not None else Text("py-spy gave no sample", "py-spy 未给出任何采样")
        remedy = refusal.remedy if refusal is not None else Text("")
        return Part(Item.STACKS, Outcome.FAILED, Rung.PY_SPY, why, remedy, began=began, ended=ended)

    def _of_cpu(self, pid: int) -> Part:
        rows = self._threads.get("rows")
        if isinstance(rows, Mapping) and rows.get(str(pid)):
            return Part(Item.CPU, Outcome.OK, Rung.PROC)
        why = excerpt(str(self._threads.get("detail") or "the process was not seen"), 300)
        return Part(Item.CPU, Outcome.FAILED, Rung.PROC, Text(why, why))

    def _of_waits(self, pid: int) -> Part:
        from probes.capture.offcpu import offcpu, offcpu_facts

        document = self._offcpu.document
        rung = {"bpftrace": Rung.BPF, "samples": Rung.PROC}.get(document.get("method"), Rung.PERF)
        refusal = offcpu.failure(document)
        nothing = Text("no wait of it was seen", "未观察到其等待")
        why, remedy = (refusal.why, refusal.remedy) if refusal is not None else (Text(""), Text(""))
        if not document.get("threads") or not offcpu_facts.spent(document, pid):
            return Part(Item.OFFCPU, Outcome.FAILED, rung, why or nothing, remedy)
        return Part(Item.OFFCPU, Outcome.PARTIAL if refusal is not None else Outcome.OK, rung, why, remedy)

    def frozen(self, pid: int, began: int) -> bool:
        """Whether the thread that runs the loop never changed its stack since `began`: a job that spins in a wait looks busy."""
        from probes.capture.stacks import stack_facts

        found = self._stack_documents.get(str(pid)) or {}
        if found.get("error"):
            return False
        tid = stack_facts.driving(self._stack_documents, pid)
        samples = ((found.get("threads") or {}).get(str(tid)) or {}).get("samples") or []
        seen = {stack for since, lasted, stack in samples if since + lasted > began}
        return len(seen) == 1 and sum(lasted for _, lasted, _ in samples) > FROZEN

    def sources(self, target: Target) -> dict[str, str]:
        """The lines of source that the stacks of a target stand on."""
        from probes.capture.stacks import sources

        pids = [target.process.pid, *(h.pid for h in target.helpers[:HELPERS])]
        found = [d for pid in pids if (d := self._stack_documents.get(str(pid))) and not d.get("error")]
        return sources.of_documents(target.process.pid, found) if found else {}


def _runtime(interpreter: Any, pid: int) -> tuple[int, int] | None:
    """Where `_PyRuntime` lies; None where that is not to be seen: waits for the interpreter's lock are not told then."""
    try:
        found: tuple[int, int] | None = interpreter.runtime_range(pid)
    except (OSError, ValueError):
        return None
    return found
