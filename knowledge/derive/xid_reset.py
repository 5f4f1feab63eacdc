"""Resets of GPUs and how they ended, as what drivers and tools say of them tells.

* NVIDIA: the recovery action changed from one to none (XID 154, 0x1 -> 0x0). The driver asks for nothing any more.
* AMD: ``GPU reset(n) succeeded`` and its failures.
* The kernel and nvidia-smi: that a reset was done, or was not.
* A reset that was asked for, and the driver cannot start the GPU right after it: it failed, whoever asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from knowledge.observation import Event, Observation, Origin, Scalar, Scope, Status

# nvidia-smi resets within seconds; programs that hold the GPU and the driver's own time-outs (45 s of the GSP) come on top.
RIGHT_AFTER = 600 * 10**9  # ns
_DERIVED = ("gpu_reset", "gpu_reset_failed")


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with one `gpu_reset` for each reset that was done, and one `gpu_reset_failed` for each that failed."""
    kept = [o for o in observations if not (o.fact in _DERIVED and o.origin is Origin.DERIVED)]
    done = [_made(o, "gpu_reset", {"told_by": by}) for o in kept if (by := _told_by(o))]
    return [*kept, *done, *_failures(kept)]


def _made(o: Observation, fact: str, fields: dict[str, Scalar]) -> Observation:
    return replace(o, fact=fact, value=Event(None, fields), origin=Origin.DERIVED)


def _told_by(o: Observation) -> str:
    """Whose word it is that the GPU was reset; empty when the observation tells of none."""
    event = o.value
    if not isinstance(event, Event) or o.status is not Status.OK:
        return ""
    if o.fact == "xid" and event.code == 154:
        back = event.get("recovery_to") == 0 and bool(event.get("recovery_from"))
        return "xid_154" if back else ""
    if event.get("stage") != "succeeded" or o.fact not in ("amdgpu_reset", "gpu_reset_attempt"):
        return ""
    return "amdgpu" if o.fact == "amdgpu_reset" else str(event.get("reporter") or "kernel")


def _failures(kept: Sequence[Observation]) -> list[Observation]:
    out = []
    asked = [o for o in kept if o.fact == "gpu_reset_attempt" and _stage(o) == "begun"]
    for o in kept:
        event = o.value
        if o.fact == "pci_reset_failed" and o.status is Status.NONE_SEEN:  # the kernel was heard, and gave none up
            out.append(replace(o, fact="gpu_reset_failed", origin=Origin.DERIVED))
        if not isinstance(event, Event):
            continue
        if _stage(o) == "failed" and o.fact in ("gpu_reset_attempt", "amdgpu_reset"):
            by = "amdgpu" if o.fact == "amdgpu_reset" else str(event.get("reporter") or "kernel")
            why = str(event.get("reason") or event.get("text") or "")
            out.append(_made(o, "gpu_reset_failed", {"told_by": by, "reason": why, "reason_zh": why}))
        elif o.fact == "gpu_init_failed" and any(_answers(o, a) for a in asked):
            en, zh = str(event.get("reason") or ""), str(event.get("reason_zh") or "")
            out.append(_made(o, "gpu_reset_failed", {"told_by": "driver", "reason": en, "reason_zh": zh}))
    return out


def _stage(o: Observation) -> object:
    return o.value.get("stage") if isinstance(o.value, Event) else None


def _answers(failed: Observation, asked: Observation) -> bool:
    """Whether a GPU that does not start is what became of the reset that was asked for: right after it, of that GPU."""
    if (
        failed.source.call != asked.source.call
        or failed.clock is not asked.clock
        or failed.at is None
        or asked.at is None
    ):
        return False
    if not 0 <= failed.at - asked.at <= RIGHT_AFTER:
        return False
    if asked.subject.up(Scope.GPU) is not None:
        return failed.subject == asked.subject
    if (
        failed.subject.host != asked.subject.host
        or not isinstance(asked.value, Event)
        or not isinstance(failed.value, Event)
    ):
        return False
    number, minor = asked.value.get("index"), failed.value.get("minor")
    return number is None or minor is None or number == minor
