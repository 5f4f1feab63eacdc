"""The `active` collector's document: what a test was, how it ended, what the GPUs did meanwhile, and what its tool printed.

What the tool printed is read by the parser of its own format. A test that was ended because a job came has measured
the two together: nothing of it is used. Fields of ``looks`` are those of ``nvidia-smi --help-query-gpu`` and
``--help-query-compute-apps``; bits of ``clocks_event_reasons.active`` are NVML's nvmlClocksEventReasons.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from knowledge.identity import normalise_pci
from knowledge.observation import Clock, Observation, Scope, Status, Subject, gpu
from knowledge.text import clean
from probes.base import Context, DocumentFormat
from probes.parse import dcgmi_diag, gpu_burn, nccl_tests, nvbandwidth, perftest
from probes.parse._active_facts import OWN
from probes.parse._active_reasons import spoken
from probes.parse._app_emit import Emitter
from probes.parse._host_snapshot import document, mapping, mappings, whole, words
from probes.parse._host_snapshot import sniff as sniff_schema

NAME, REVISION = "active-run", 1
SCHEMA = "gpudiag/active/1"
OUTCOMES = ("ended", "busy", "absent", "refused", "blind", "job", "timeout", "cancelled", "failed")
_TOOLS: Mapping[str, DocumentFormat] = {
    "dcgmi": dcgmi_diag.FORMAT, "nvbandwidth": nvbandwidth.FORMAT, "all_reduce_perf": nccl_tests.FORMAT,
    "ib_write_bw": perftest.FORMAT, "gpu_burn": gpu_burn.FORMAT, "gpu-burn": gpu_burn.FORMAT,
}  # fmt: skip
PROVIDES = tuple(dict.fromkeys((*OWN, *(fact for f in _TOOLS.values() for fact in f.provides))))
LONGEST_TOLD = 2000  # characters of a reason as data
_USED = ("ended", "timeout", "cancelled")  # outcomes of which what was printed stands for the hardware
_THERMAL = 0x20 | 0x40  # SwThermalSlowdown, HwThermalSlowdown
_BRAKE = 0x80  # HwPowerBrakeSlowdown
_INDEX = re.compile(r"index:(\d{1,3})")
# GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0a0a...): gpu-burn has nvidia-smi -L list all GPUs, whichever it burns
_LISTED = re.compile(r"(?m)^GPU \d{1,3}: .{1,120}\(UUID: GPU-[0-9a-f-]{1,40}\)\s*$")


def sniff(head: str) -> int:
    """100 for the collector's document."""
    return sniff_schema(head, SCHEMA)


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of the run, of the GPUs while it went on, and of what its tool printed."""
    run = document(text, SCHEMA)
    if not run:
        return []
    emit = Emitter(NAME, REVISION, context)
    outcome = str(run.get("outcome"))
    _about(emit, run, outcome)
    gpus = mappings(mapping(run.get("before")).get("gpus"))
    if outcome in _USED:
        _gpus(emit, mappings(run.get("looks")), gpus)
    at = whole(run.get("ended")) or whole(run.get("began"))
    mine = [_stamped(o, at) for o in emit.out]
    argv = words(run.get("argv"))
    tool = _TOOLS.get(argv[0]) if argv else None
    printed = run.get("stdout")
    if tool is None or outcome not in _USED or not isinstance(printed, str):
        return mine
    chosen = [_subject(g, context.host) for g in gpus]
    numbers = {clean(str(g.get("index"))): s for g, s in zip(gpus, chosen, strict=True)}
    if tool is gpu_burn.FORMAT:
        printed = _LISTED.sub("", printed)
    if tool is not dcgmi_diag.FORMAT:  # CUDA numbers those that it may see; DCGM keeps the machine's numbers
        numbers = {str(n): s for n, s in enumerate(chosen)}
    found = tool.parse(printed, context)
    return mine + [_stamped(o.about(_placed(o.subject, numbers)), at) for o in found]


def _about(emit: Emitter, run: Mapping[str, Any], outcome: str) -> None:
    name = clean(str(run.get("test", "")))[:60]
    shown = f"{name}: {outcome}"
    emit.fact("active.test", emit.document, name, excerpt=shown)
    if outcome not in OUTCOMES:
        emit.missing("active.outcome", emit.document, Status.FAILED, f"outcome {outcome[:40]!r} is not understood")
        return
    emit.fact("active.outcome", emit.document, outcome, excerpt=shown)
    reason = run.get("reason") or run.get("why") or ""
    code = run.get("exit_code")
    if isinstance(code, int) and not isinstance(code, bool):
        emit.fact("active.exit_code", emit.document, code, excerpt=f"exit_code: {code}")
        said = next((line for line in str(run.get("stderr") or "").splitlines() if line.strip()), "")
        if code and not reason:
            reason = {"code": "exit-said" if said else "exit", "test": name, "exit": code, "said": clean(said)[:200]}
    if why := spoken(reason).en:
        emit.fact("active.why", emit.document, why, excerpt=why)
    if isinstance(reason, Mapping) and reason:
        told = json.dumps(reason, ensure_ascii=False, sort_keys=True)[:LONGEST_TOLD]
        emit.fact("active.reason", emit.document, clean(told), excerpt=why)
    began, ended = whole(run.get("started")), whole(run.get("ended"))
    if began is not None and ended is not None and ended >= began:
        emit.fact("active.seconds", emit.document, round((ended - began) / 1e9, 1), excerpt=shown)
    if "left" in run:
        emit.fact(
            "active.left_running", emit.document, len(words(run.get("left"))), excerpt=f"left: {words(run.get('left'))}"
        )


def _gpus(emit: Emitter, looks: Sequence[Mapping[str, Any]], gpus: Sequence[Mapping[str, Any]]) -> None:
    """What each GPU did while the test ran: extremes, and the share of looks at which it was slowed."""
    for one in gpus:
        rows = [g for look in looks for g in mappings(look.get("gpus")) if g.get("uuid") == one.get("uuid")]
        subject, many = _subject(one, emit.context.host), f"{len(rows)} looks"
        heat = [v for g in rows if (v := _number(g.get("temperature.gpu"))) is not None]
        power = [v for g in rows if (v := _number(g.get("power.draw"))) is not None]
        clocks = [v for g in rows if (v := _number(g.get("clocks.sm"))) is not None]
        bits = [v for g in rows if (v := _bits(g)) is not None]
        if heat:
            emit.fact("gpu.active.temperature.max", subject, int(max(heat)), excerpt=many)
        if power:
            emit.fact("gpu.active.power.max", subject, max(power), excerpt=many)
        if clocks:
            emit.fact("gpu.active.clock.sm.median", subject, int(median(clocks)), excerpt=many)
        for name, mask in (("thermal", _THERMAL), ("power_brake", _BRAKE)):
            if bits:
                share = round(100 * sum(bool(b & mask) for b in bits) / len(bits), 1)
                emit.fact(f"gpu.active.slowed.{name}.share", subject, share, excerpt=many)


def _number(text: object) -> float | None:
    try:
        value = float(str(text)[:40])
    except ValueError:
        return None
    return value if value - value == 0 else None


def _bits(g: Mapping[str, Any]) -> int | None:
    """``0x0000000000000004``"""
    text = str(g.get("clocks_event_reasons.active", g.get("clocks_throttle_reasons.active", "")))
    return int(text, 16) if re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", text) else None


def _subject(g: Mapping[str, Any], host: str) -> Subject:
    pci = normalise_pci(clean(str(g.get("pci.bus_id", ""))))
    return gpu(pci or clean(str(g.get("uuid", "")))[:60] or f"index:{clean(str(g.get('index')))[:4]}", host)


def _placed(subject: Subject, numbers: Mapping[str, Subject]) -> Subject:
    if subject.scope is Scope.GPU and (found := _INDEX.fullmatch(subject.id)):
        return numbers.get(found[1], subject)
    return subject


def _stamped(o: Observation, at: int | None) -> Observation:
    return o if at is None or o.at is not None else replace(o, at=at, clock=Clock.REALTIME)


FORMAT = DocumentFormat(NAME, "result of an active test (gpudiag test)", REVISION, PROVIDES, sniff, parse)
