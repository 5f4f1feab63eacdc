"""Facts from what the kernel knows of threads off the CPU: what the thread that runs the loop waits for, and under which Python function.

Shares are percent of the window that was recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from knowledge.observation import Observation, Status, Subject
from knowledge.text import digits, excerpt
from knowledge.waits import waits
from probes.capture.model import Target
from probes.capture.offcpu import _offcpu_why
from probes.capture.offcpu.offcpu_document import Launches, OffCpuDoc, restored
from probes.capture.offcpu.offcpu_join import Joined, join
from probes.capture.readings._telling import Gap, Teller, Told, Window, mapping
from probes.capture.stacks import blame, stack_document
from probes.capture.stacks.stack_document import StackDoc

PROBE: Final = "offcpu"
GROUPS: Final = {
    "driver": ("driver",),
    "memory": ("reclaim", "swap"),
    "shared_storage": ("nfs", "lustre", "shared_fs"),
}
MAIN: Final = ("offcpu.share", "offcpu.kind", "offcpu.kind.share", "offcpu.function", "offcpu.kernel.function")
FACTS: Final = (*MAIN, *(f"offcpu.{g}.{part}" for g in GROUPS for part in ("share", "function")), "launches.rate")
_SHORT: Final = 50_000_000  # ns: less of a window tells no share


def observations(
    document: object, stacks: object, target: Target, subject: Subject, *, sources: Mapping[str, str] | None = None,
    driving: int | None = None, at: int | None = None, window: Window | None = None,
) -> list[Observation]:  # fmt: skip
    """What the recording tells of one target.

    `document`: the capture's OffCpuDoc; `stacks`: the StackDoc of the target, None without; `driving`: the thread that runs the loop, by default
    what its Python stacks say, else the main one; `at`: UTC ns of the window's begin. Never raises; what could not be had is told with the reason.
    """
    pid, doc, tell = target.process.pid, restored(document), Teller(PROBE, at)
    python = stack_document.restored(stacks)
    lines = {k: v for k, v in mapping(sources).items() if isinstance(v, str)}
    if driving is None and python is not None and not python["error"]:
        tid = blame.driving(python, pid, lines)
        driving = digits(tid) if tid is not None else None
    _waits(tell, subject, doc, python, str(pid if driving is None else driving), lines, window)
    _launches(tell, subject, doc, pid)
    return tell.out


def _waits(
    tell: Teller, subject: Subject, doc: OffCpuDoc | None, python: StackDoc | None, tid: str, sources: Mapping[str, str], window: Window | None
) -> None:  # fmt: skip
    why = _absent(doc, tid)
    if doc is None or why is not None:
        for fact in FACTS[:-1]:
            tell.add(fact, subject, why or Gap(Status.NOT_ASKED, "it was not recorded"))
        return
    found = join(doc, python, tid, sources, window)
    call = f"{doc['tool']} ({doc['method']}), thread {tid}"
    if found.covered < _SHORT:
        for fact in FACTS[:-1]:
            tell.add(fact, subject, Gap(Status.FAILED, "the recording covers too little of the window"), call)
        return
    tell.add("offcpu.share", subject, found.share(), call, _figures(found, doc))
    _kind(tell, subject, found, doc, python, call)
    blind = _blind(found, doc)
    for group, kinds in GROUPS.items():
        tell.add(
            f"offcpu.{group}.share", subject, blind or found.share(*kinds), call, "" if blind else _shown(found, *kinds)
        )
        tell.add(f"offcpu.{group}.function", subject, blind or _function(found, python, *kinds), call)


def _absent(doc: OffCpuDoc | None, tid: str) -> Gap | None:
    if doc is None:
        return Gap(Status.NOT_ASKED, "off-CPU time was not recorded: capture with `--with offcpu`")
    if not doc["threads"]:
        refusal = _offcpu_why.why(doc["code"] or "nothing", doc["detail"])
        remedy = f"; {refusal.remedy.en}" if refusal.remedy.en else ""
        return Gap(_offcpu_why.status(doc["code"]), f"{excerpt(doc['error'] or refusal.why.en, 200)}{remedy}")
    if tid not in doc["threads"]:
        return Gap(Status.FAILED, "nothing was recorded of the thread that runs the loop")
    return None


def _blind(found: Joined, doc: OffCpuDoc) -> Gap | None:
    """Why kinds cannot be told, where most of the time has no function of the kernel."""
    if not found.off or 2 * found.blind < found.off:
        return None
    if doc["error"]:
        refusal = _offcpu_why.why(doc["code"], doc["detail"])
        return Gap(_offcpu_why.status(doc["code"]), f"{refusal.why.en}; {refusal.remedy.en}")
    return Gap(Status.FAILED, "most of the time off the CPU has no function of the kernel")


def _kind(tell: Teller, subject: Subject, found: Joined, doc: OffCpuDoc, python: StackDoc | None, call: str) -> None:
    top, blind = found.top(), _blind(found, doc)
    none = blind or (None if top else Gap(Status.NONE_SEEN, "the thread was never off the CPU"))
    if none is not None:
        for fact in ("offcpu.kind", "offcpu.kind.share", "offcpu.kernel.function"):
            tell.add(fact, subject, none, call)
        # where it waits may be known, though not for what
        tell.add("offcpu.function", subject, _function(found, python, *found.kinds) if found.kinds else none, call)
        return
    tell.add("offcpu.kind", subject, top, call, waits()[top].title.en)
    tell.add("offcpu.kind.share", subject, found.share(top), call, _shown(found, top))
    tell.add("offcpu.function", subject, _function(found, python, top), call, _shown(found, top))
    kernel = found.kernel_function(top)
    tell.add(
        "offcpu.kernel.function",
        subject,
        kernel or Gap(Status.NONE_SEEN, "no function of the kernel was seen in it"),
        call,
    )


def _function(found: Joined, python: StackDoc | None, *kinds: str) -> Told:
    where = found.function(*kinds)
    if where is not None:
        return where[0]
    if python is None or python["error"]:
        return Gap(Status.NOT_ASKED, "its Python stacks were not sampled: capture with `--with stacks,offcpu`")
    return Gap(Status.NONE_SEEN, "no function of the program was seen in it")


def _shown(found: Joined, *kinds: str) -> str:
    """ "0.612 s of 1.012 s in folio_wait_bit_common"."""
    ns, kernel = sum(found.kinds[k] for k in kinds), found.kernel_function(*kinds)
    return f"{ns / 1e9:.3f} s of {found.covered / 1e9:.3f} s" + (f" in {kernel}" if kernel else "")


def _figures(found: Joined, doc: OffCpuDoc) -> str:
    kinds = sorted(found.kinds.items(), key=lambda k: (-k[1], k[0]))[:5]
    said = [
        f"{found.off / 1e9:.3f} s of {found.covered / 1e9:.3f} s",
        *(f"{kind} {ns / 1e9:.3f} s" for kind, ns in kinds),
    ]
    if doc["method"] == "samples":
        said.append("looked at again and again")
    if doc["lost"]:
        said.append(f"{doc['lost']} records lost")
    if doc["cut"]:
        said.append("cut: more was recorded than is kept")
    return "; ".join(said)


def _launches(tell: Teller, subject: Subject, doc: OffCpuDoc | None, pid: int) -> None:
    row: Launches | None = doc["launches"].get(str(pid)) if doc is not None else None
    if row is None:
        tell.add("launches.rate", subject, Gap(Status.NOT_ASKED, "launches were not counted"))
        return
    if row["code"]:
        refusal = _offcpu_why.why(row["code"], row["detail"])
        remedy = f"; {refusal.remedy.en}" if refusal.remedy.en else ""
        tell.add("launches.rate", subject, Gap(_offcpu_why.status(row["code"]), f"{refusal.why.en}{remedy}"))
        return
    seconds, calls = (row["ended"] - row["began"]) / 1e9, sum(c[2] for c in row["counts"])
    told: Told = calls / seconds if seconds > 0 else Gap(Status.FAILED, "the recording has no length")
    tell.add(
        "launches.rate", subject, told, f"uprobes on {', '.join(row['symbols'])}", f"{calls} calls in {seconds:.3f} s"
    )


def spent(document: Mapping[str, Any], pid: int) -> int:
    """How many spans a document holds of a process, for what a capture says it got."""
    doc = restored(document)
    return sum(len(t["off"]) for t in doc["threads"].values() if t["pid"] == pid) if doc else 0
