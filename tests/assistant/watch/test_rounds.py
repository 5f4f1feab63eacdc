"""What a check could not look for, on real rules: reboots, logs that wrapped, GPUs that are gone, consequences, other names."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import cache

from assistant.diagnosis import Diagnosis, diagnose
from assistant.watch.alerts import SECOND, Book, Policy, step
from assistant.watch.rounds import blind, names, sightings
from knowledge.observation import Clock, Event, Observation, Source, Status, gpu, node
from probes.base import Context
from probes.parse import kernel_log
from probes.scan import scan
from rules.loader import RuleSet, load

NOW = 1_780_000_000 * SECOND
HOUR = 3600 * SECOND
NODE, GPU = node("n1"), gpu("0000:3b:00.0", "n1")
KERNEL = Source("kernel-log", "journalctl")


@cache
def rules() -> RuleSet:
    return load()


def xid(code: int, at: int, text: str = "") -> Observation:
    line = f"NVRM: Xid (PCI:0000:3b:00): {code}, {text}"
    return Observation("xid", GPU, Event(code, {"pid": 7}), source=KERNEL, at=at, clock=Clock.REALTIME, excerpt=line)


def log(since: int, now: int) -> list[Observation]:
    quiet = [
        Observation(f, NODE, None, Status.NONE_SEEN, KERNEL, at=now, clock=Clock.REALTIME, window=(since, now))
        for f in kernel_log.KERNEL_EVENTS
    ]
    return [Observation("log.kernel.readable", NODE, True, source=KERNEL), *quiet]


def listed(*gpus: str, now: int = NOW) -> list[Observation]:
    source = Source("nvml", "nvmlInit")
    out = [
        Observation("node.driver.state", NODE, "running", source=source, at=now, clock=Clock.REALTIME),
        Observation("node.gpu.count", NODE, len(gpus), source=source, at=now, clock=Clock.REALTIME),
    ]
    for i, pci in enumerate(gpus):
        out.append(Observation("gpu.uuid", gpu(pci, "n1"), f"GPU-{i}", source=source, at=now, clock=Clock.REALTIME))
        out.append(Observation("gpu.index", gpu(pci, "n1"), i, source=source, at=now, clock=Clock.REALTIME))
    return out


def check(*observations: Observation, now: int = NOW) -> Diagnosis:
    return diagnose(observations, rules(), as_of=now, whole=True)


def fallen() -> Book:
    """A GPU fell off the bus an hour ago; boot b1."""
    found = sightings(check(xid(79, NOW - HOUR, "GPU has fallen off the bus."), *log(NOW - 48 * HOUR, NOW)), "b1")
    book, changes = step(Book(), found, (), NOW, Policy())
    assert [c.alert.last.rule for c in changes] == ["gpu-fell-off-bus"]
    return book


def looked_for(book: Book, diagnosis: Diagnosis, boot: str = "b1", now: int = NOW) -> bool:
    return not blind(book, diagnosis, boot, now)


def test_a_log_that_reaches_back_and_holds_it_no_more_tells() -> None:
    quiet = check(*log(NOW - 48 * HOUR, NOW), *listed("0000:3b:00.0"))
    assert looked_for(fallen(), quiet)


def test_a_log_that_wrapped_does_not_tell_until_the_rule_would_have_let_go() -> None:
    wrapped = check(*log(NOW - HOUR // 2, NOW), *listed("0000:3b:00.0"))
    assert not looked_for(fallen(), wrapped)
    late = NOW + 25 * HOUR
    assert looked_for(fallen(), check(*log(late - HOUR, late), *listed("0000:3b:00.0", now=late), now=late), now=late)


def test_after_a_reboot_the_gpu_must_be_back() -> None:
    fresh = log(NOW - 60 * SECOND, NOW)
    assert looked_for(fallen(), check(*fresh, *listed("0000:3b:00.0")), "b2")
    assert not looked_for(fallen(), check(*fresh, *listed("0000:86:00.0")), "b2")
    hung = Observation("node.driver.state", NODE, None, Status.TIMEOUT, Source("nvml"))
    assert not looked_for(fallen(), check(*fresh, hung), "b2")
    unreachable = Observation("gpu.nvml.reachable", GPU, False, source=Source("nvml"))
    assert not looked_for(fallen(), check(*fresh, *listed("0000:3b:00.0"), unreachable), "b2")


def test_a_machine_without_a_driver_that_lists_gpus_is_judged_by_its_log() -> None:
    assert looked_for(fallen(), check(*log(NOW - 48 * HOUR, NOW)))


def test_a_log_that_cannot_be_read_tells_nothing() -> None:
    denied = Observation("log.kernel.readable", NODE, None, Status.DENIED, KERNEL)
    assert not looked_for(fallen(), check(denied, *listed("0000:3b:00.0")))


def test_what_became_a_consequence_is_neither_told_anew_nor_cleared() -> None:
    first = check(
        xid(119, NOW - HOUR, "Timeout after 6s of waiting for RPC response from GPU0 GSP!"), *log(NOW - 48 * HOUR, NOW)
    )
    found = sightings(first, "b1")
    book, _ = step(Book(), found, (), NOW, Policy())
    keys = set(book.alerts)
    assert keys
    both = check(
        xid(79, NOW - HOUR - SECOND, "GPU has fallen off the bus."),
        xid(119, NOW - HOUR, "Timeout"),
        *log(NOW - 48 * HOUR, NOW),
    )
    roots = {s.key for s in sightings(both)}
    assert keys - roots, "the first fault is explained by the other now"
    assert keys - roots <= blind(book, both, "b1", NOW)


def test_a_program_that_crashes_again_and_again_is_one_alert() -> None:
    lines = "".join(
        f"[{i}.000000] python[{i}]: segfault at 0 ip 0 sp 0 error 4 in libx.so[0+1]\n" for i in range(100, 140)
    )
    stream = io.BytesIO(lines.encode())
    found = scan([stream], [kernel_log.FORMAT], lambda _: Context("dmesg", "n1")).observations
    seen = [s for s in sightings(check(*found)) if s.rule == "process-crashed"]
    assert seen
    assert {s.subject for s in seen} == {"node n1"}


def test_a_gpu_known_by_index_gets_its_address() -> None:
    book = fallen()
    (alert,) = book.alerts.values()
    old = replace(alert, last=replace(alert.last, subject="gpu index:0"))
    assert names(Book({old.last.key: old}), check(*listed("0000:3b:00.0"))) == {
        "gpu index:0": "gpu 0000:3b:00.0", "gpu GPU-0": "gpu 0000:3b:00.0",
    }  # fmt: skip
    assert names(book, check(*listed("0000:3b:00.0"))) == {}, "nobody asks where no alert needs it"
