"""Snapshots of /proc and /sys: laws over any text, and machines that are sick in one way each."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from knowledge.facts import vocabulary
from knowledge.observation import Clock, Observation, Series, Status
from probes.base import Context
from probes.parse import _system_cpu, _system_doc, system_snapshot
from tests import system_trees as trees
from tests.cases import each
from tests.system_trees import Machine, healthy, snapshot

pytestmark = pytest.mark.process


FORMAT = system_snapshot.FORMAT
CONTEXT = Context("a file", "")


@cache
def sound() -> str:
    """The real collector's answer on the tree of a sound machine."""
    with tempfile.TemporaryDirectory() as folder:
        return snapshot(healthy(Machine(cores=4, pci=2)), Path(folder))


def document() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(sound())
    return data


def parse(data: dict[str, Any] | str) -> list[Observation]:
    return FORMAT.parse(data if isinstance(data, str) else json.dumps(data), CONTEXT)


def by_fact(data: dict[str, Any] | str) -> dict[str, Observation]:
    return {o.fact: o for o in parse(data) if o.subject.scope == "node"}


def check(found: list[Observation]) -> None:
    """What holds for every answer."""
    names = vocabulary()
    assert max(Counter((o.fact, o.subject) for o in found).values(), default=1) == 1
    for o in found:
        assert o.fact in FORMAT.provides
        if o.status is not Status.OK:
            assert o.value is None
            assert o.detail
            continue
        assert names[o.fact].accepts(o.value), o
        assert not isinstance(o.value, Series)
        if isinstance(o.value, int | float):
            assert o.value >= 0, o
        if names[o.fact].unit == "percent" and not o.fact.startswith("node.cgroup"):
            assert isinstance(o.value, int | float)
            assert o.value <= 100, o


# --- laws ---------------------------------------------------------------------------------


def test_every_fact_is_given_once() -> None:
    found = parse(sound())
    check(found)
    assert {o.fact for o in found} == set(FORMAT.provides)
    assert {o.clock for o in found} == {Clock.REALTIME}
    assert {o.subject.host for o in found} == {"gpu-12"}


@given(st.text())
def test_any_text(text: str) -> None:
    check(parse(text))
    check(parse('{"schema": "gpudiag/system/1", ' + text))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(["-1", "max", "12\n", "0-3"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(st.data())
def test_any_value_anywhere(data: st.DataObject) -> None:
    """Each entry of a document may be anything: no other one is lost, nothing raises."""
    doc = document()
    for _ in range(data.draw(st.integers(1, 4))):
        table = data.draw(st.sampled_from([doc, doc["static"], *doc["readings"]]))
        if not isinstance(table, dict) or not table:
            break
        table[data.draw(st.sampled_from(sorted(table)))] = data.draw(VALUES)
        if not (isinstance(doc.get("readings"), list) and isinstance(doc.get("static"), dict)):
            break
    check(parse(json.dumps(doc)))


@given(st.data())
def test_any_words_in_a_file(data: st.DataObject) -> None:
    """Words of the kernel's files changed at random: a counter may go anywhere, a rate is never negative."""
    doc = document()
    table = data.draw(st.sampled_from(doc["readings"]))
    path = data.draw(st.sampled_from(sorted(p for p, e in table.items() if "text" in e)))
    words = table[path]["text"].split(" ")
    for _ in range(data.draw(st.integers(1, 5))):
        i = data.draw(st.integers(0, len(words) - 1))
        words[i] = data.draw(
            st.sampled_from(["", "0", "-1", "x", "99999999999999999999", "184467440737095516159", "1e9", "\n", ":"])
            | st.integers(0, 2**64).map(str)
        )
    table[path]["text"] = " ".join(words)
    check(parse(doc))


@given(
    st.lists(st.integers(0, 2**64 - 1), min_size=10, max_size=10),
    st.lists(st.integers(0, 2**64 - 1), min_size=10, max_size=10),
)
@example(before=[0, 0, 0, 0, 1, 2, 1, 0, 0, 0], after=[0, 0, 0, 2, 0, 2, 1, 0, 0, 0])  # iowait shrinks, idle grows
def test_shares_of_any_two_lines(before: list[int], after: list[int]) -> None:
    found = _system_cpu.shares(f"cpu  {' '.join(map(str, before))}", f"cpu  {' '.join(map(str, after))}")
    if isinstance(found, _system_doc.Gap):
        assert found.status is Status.FAILED
        return
    assert all(0 <= share <= 100.0001 for share in found.values())
    assert found["busy"] == pytest.approx(
        found["user"] + sum(found[f] for f in ("system", "irq", "softirq", "steal")), abs=1e-6
    )


@given(st.data())
def test_what_is_not_there_is_said(data: st.DataObject) -> None:
    """Without some files the same facts are named, and none of those that stood in them has a value."""
    doc = document()
    paths = sorted({*doc["static"], *doc["readings"][1]})
    gone = data.draw(st.sets(st.sampled_from(paths), min_size=1, max_size=6))
    for table in (doc["static"], *doc["readings"]):
        for path in gone & set(table):
            del table[path]
    before, after = by_fact(sound()), by_fact(doc)
    assert set(before) - set(after) <= {"nic.operstate", "gpu.numa", "gpu.cpu_affinity"}
    for o in after.values():
        if o.source.call in gone:
            assert not o.status.answered, o
    check(parse(doc))


@each(
    ("error", "status", "word"),
    [
        ("EACCES: Permission denied", Status.DENIED, "sudo"), ("ENOENT: No such file or directory", Status.UNSUPPORTED, "does not have it"),
        ("EOPNOTSUPP: Operation not supported", Status.UNSUPPORTED, "does not have it"), ("EIO: Input/output error", Status.FAILED, "EIO"),
    ],
)  # fmt: skip
def test_an_error_becomes_a_status(error: str, status: Status, word: str) -> None:
    doc = document()
    doc["readings"][1]["/proc/meminfo"] = {"error": error}
    seen = by_fact(doc)["node.memory.available"]
    assert (seen.status, seen.source.call) == (status, "/proc/meminfo")
    assert word in seen.detail


@each(
    ("path", "old", "new", "fact"),
    [
        ("/proc/net/snmp", "1005000", "999", "node.tcp.segments.out"), ("/proc/stat", "ctxt 10004000", "ctxt 1", "node.context_switches"),
        ("/proc/vmstat", "pgmajfault 700", "pgmajfault 1", "node.faults.major"), ("/proc/pressure/io", "total=1000", "total=0", "node.pressure.io.full.now"),
        ("/proc/diskstats", " 1800 ", " 5 ", "node.disk.read"), ("/proc/schedstat", "900010", "8", "node.cpu.queue_wait"),
    ],
)  # fmt: skip
def test_a_counter_that_went_backwards_has_no_rate(path: str, old: str, new: str, fact: str) -> None:
    doc = document()
    text = doc["readings"][1][path]["text"]
    assert old in text
    doc["readings"][1][path]["text"] = text.replace(old, new)
    seen = by_fact(doc)[fact]
    assert seen.status is Status.FAILED
    assert "backwards" in seen.detail


def test_iowait_may_decrease_as_the_kernel_says() -> None:
    found = _system_cpu.shares("cpu  100 0 100 1000 50 0 0 0", "cpu  110 0 100 1045 45 0 0 0")
    assert not isinstance(found, _system_doc.Gap)
    assert (found["busy"], found["iowait"]) == (20.0, 0.0)


@pytest.mark.parametrize("change", ["one reading", "no time", "the same moment"])
def test_two_readings_are_needed_for_a_rate(change: str) -> None:
    doc = document()
    first, second = doc["readings"]
    if change == "one reading":
        doc["readings"] = [first]
    elif change == "no time":
        del second["/proc/stat"]["mono_ns"]
    else:
        second["/proc/stat"]["mono_ns"] = first["/proc/stat"]["mono_ns"]
    seen = by_fact(doc)["node.cpu.busy"]
    assert seen.status is Status.FAILED
    assert "/proc/stat" in seen.detail


def test_rates_carry_their_window_and_levels_do_not() -> None:
    seen = by_fact(sound())
    busy, available = seen["node.cpu.busy"], seen["node.memory.available"]
    assert busy.window is not None
    assert busy.window[1] == busy.at
    assert available.window is None
    assert (busy.source.call, available.excerpt) == ("/proc/stat", "MemAvailable:   921600000 kB")


def test_a_document_that_is_cut_off_says_so() -> None:
    found = parse(sound()[:2000])
    assert {o.fact for o in found} == set(system_snapshot.MAIN)
    assert {o.status for o in found} == {Status.FAILED}
    assert FORMAT.sniff(sound()[:100]) == 100


@each("text", ["", "{}", '{"schema": "gpudiag/nvml/1"}', 'log: {"schema": "gpudiag/system/1"', "Xid 79"])
def test_other_texts_are_not_recognised(text: str) -> None:
    assert FORMAT.sniff(text) == 0


def test_the_name_that_the_caller_knows_counts() -> None:
    found = FORMAT.parse(sound(), Context("a file", "n7"))
    assert {o.subject.host for o in found} == {"n7"}


# --- machines -----------------------------------------------------------------------------


def test_one_core_takes_all_interrupts_of_an_adapter(tmp_path: Path) -> None:
    machine = healthy(Machine(cores=16, per_core={3: {"softirq": 49, "idle": 1}}))
    name = "mlx5_comp12@pci:0000:0c:00.0"
    machine.files["/proc/interrupts"] = trees.interrupts(machine, 0, name, 3, 9000)
    machine.later["/proc/interrupts"] = trees.interrupts(machine, 1, name, 3, 9000)
    seen = by_fact(snapshot(machine, tmp_path))
    assert (seen["node.cpu.core.softirq.cpu"].value, seen["node.cpu.core.softirq.max"].value) == (3, 98.0)
    assert (seen["node.interrupts.device"].value, seen["node.interrupts.device.cpu"].value) == ("mlx5@0000:0c:00.0", 3)


@each(
    ("words", "name"),
    [
        ("IR-PCI-MSI 524288-edge      nvidia", "nvidia"), ("PCI-MSI-edge eth0-TxRx-12", "eth0"), ("IO-APIC 2-edge timer", "timer"),
        ("IR-PCI-MSIX-0000:c1:00.0 7-edge nvme0q7", "nvme0"), ("PCI-MSI 65537-edge virtio0-input.0", "virtio0"),
        ("IR-PCI-MSI 1-edge mlx5_async0@pci:0000:0c:00.0", "mlx5@0000:0c:00.0"), ("GICv3 27 Level arch_timer", "arch_timer"), ("", ""),
    ],
)  # fmt: skip
def test_the_device_of_an_interrupt(words: str, name: str) -> None:
    assert _system_cpu.device_of(words.split()) == name


def test_memory_is_short_and_swaps(tmp_path: Path) -> None:
    machine = healthy(Machine(files={"/proc/meminfo": trees.meminfo(9000, SwapTotal=8000, SwapFree=1000),
                                     "/proc/pressure/memory": trees.pressure(60, 40, 1000)}))  # fmt: skip
    machine.later |= {"/proc/vmstat": trees.table(trees.VMSTAT | {"pswpin": 5120, "pswpout": 2560, "allocstall_normal": 900, "oom_kill": 2}),
                      "/proc/pressure/memory": trees.pressure(60, 40, 21000)}  # fmt: skip
    seen = by_fact(snapshot(machine, tmp_path))
    assert (seen["node.memory.available.share"].value, seen["node.swap.used"].value) == (0.9, 7000.0)
    assert seen["node.memory.oom_kills"].value == 2
    swapped = seen["node.swap.in"].value
    assert isinstance(swapped, float)
    assert swapped > 50, "20 MiB within the window"
    assert seen["node.pressure.memory.full.avg60"].value == 40.0
    now = seen["node.pressure.memory.full.now"].value
    assert isinstance(now, float)
    assert 5 < now <= 45, "20 ms of some 50"


def test_clocks_and_frequencies_of_a_sick_machine(tmp_path: Path) -> None:
    folder = trees.CPU
    machine = healthy(Machine(files={
        "/sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
        f"{folder}cpu0/cpufreq/scaling_driver": "acpi-cpufreq\n", f"{folder}cpu3/cpufreq/scaling_governor": "powersave\n",
        f"{folder}cpu3/cpufreq/scaling_max_freq": "1200000\n", "/proc/sys/kernel/tainted": "128\n",
    }, per_core={1: {"user": 50}}))  # fmt: skip
    machine.later[f"{folder}cpu5/thermal_throttle/core_throttle_count"] = "4\n"
    seen = by_fact(snapshot(machine, tmp_path))
    assert seen["node.cpu.governors"].value == ("performance", "powersave")
    assert seen["node.cpu.frequency.limit"].value == 1200.0
    assert seen["node.cpu.frequency.limit.share"].value == pytest.approx(31.579)
    assert seen["node.cpu.frequency.busy"].value == 3100.0
    assert seen["node.kernel.taints"].value == ("died",)
    rate = seen["node.cpu.throttle.rate"].value
    assert isinstance(rate, float)
    assert rate > 0


def test_adapters_that_drop_and_disks_that_wait(tmp_path: Path) -> None:
    machine = healthy()
    machine.later |= {
        "/proc/net/dev": trees.NET_HEAD
        + trees.net("eth0", rx_drop=500, rx_errs=3)
        + trees.net("lo")
        + trees.net("veth1a", rx_drop=9),
        "/proc/diskstats": trees.disk("nvme0n1", 510, 5100, 140, 9000) + trees.disk("loop0", 9, 9, 9, 99999),
    }
    found = parse(snapshot(machine, tmp_path))
    drops = [o for o in found if o.fact == "nic.rx.dropped.rate"]
    assert [(o.subject.id, o.subject.host) for o in drops] == [("eth0", "gpu-12")], "a veth is no adapter"
    assert isinstance(drops[0].value, float)
    assert drops[0].value > 100
    seen = {o.fact: o.value for o in found}
    assert (seen["node.disk.busiest"], seen["node.disk.busiest.await"]) == ("nvme0n1", 500.0)


def test_where_gpus_are(tmp_path: Path) -> None:
    machine = healthy(Machine(pci=3))
    machine.files["/sys/bus/pci/devices/0000:1c:00.0/numa_node"] = "-1\n"
    found = [o for o in parse(snapshot(machine, tmp_path)) if o.fact == "gpu.numa"]
    assert [(o.subject.id, o.value, o.status) for o in found] == [
        ("0000:1b:00.0", 0, Status.OK), ("0000:1c:00.0", None, Status.UNSUPPORTED), ("0000:1d:00.0", 0, Status.OK),
    ]  # fmt: skip


@each(
    ("files", "kind"),
    [
        ({"/.dockerenv": ""}, "docker"), ({"/run/.containerenv": "x"}, "podman"),
        ({"/proc/self/cgroup": "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-7.scope\n"}, "kubernetes"),
        ({"/run/systemd/container": "lxc\n"}, "lxc"), ({"/run/secrets/kubernetes.io/x": "", "/.dockerenv": ""}, "kubernetes"),
    ],
)  # fmt: skip
def test_containers(tmp_path: Path, files: dict[str, str | None], kind: str) -> None:
    seen = by_fact(snapshot(healthy(Machine(files=files)), tmp_path))
    assert (seen["node.container"].value, seen["node.container.kind"].value) == (True, kind)


def test_an_overlay_alone_tells_nothing(tmp_path: Path) -> None:
    mounts = trees.ROOT_MOUNT.replace("ext4", "overlay") + trees.V2_MOUNT
    seen = by_fact(snapshot(healthy(Machine(files={"/proc/self/mountinfo": mounts})), tmp_path))
    assert seen["node.container"].status is Status.UNSUPPORTED


@each(
    ("text", "cpus"),
    [("0-3,8\n", (0, 1, 2, 3, 8)), ("", ()), ("5", (5,)), ("3-1", None), ("a", None), ("0-99999999", None)],
)
def test_lists_of_cpus(text: str, cpus: tuple[int, ...] | None) -> None:
    assert _system_doc.listed(text) == cpus
