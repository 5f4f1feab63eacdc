"""Whole logs: what happened, to whom, once each; and what a log says by not saying it."""

from __future__ import annotations

from pathlib import Path

from knowledge.observation import Clock, Event, Observation, Status
from probes.base import Context, lines_of
from probes.parse import kernel_log
from tests.cases import each

CAPTURES = Path(__file__).parents[2] / "captures" / "logs"
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=x, GPU has fallen off the bus."


def read(text: str, host: str = "") -> list[Observation]:
    return kernel_log.parse(lines_of(text), Context("log", host))


def events(found: list[Observation], *without: str) -> list[tuple[str, str, int | None]]:
    return [
        (o.fact, o.subject.id, o.value.code)
        for o in found
        if isinstance(o.value, Event) and o.status is Status.OK and o.fact not in without
    ]


def none_seen(found: list[Observation]) -> dict[tuple[str, str], Observation]:
    return {(o.subject.host, o.fact): o for o in found if o.status is Status.NONE_SEEN}


def readable(found: list[Observation]) -> Observation:
    [one] = [o for o in found if o.fact == "log.kernel.readable"]
    return one


def test_a_gpu_that_falls_off_the_bus() -> None:
    found = read((CAPTURES / "syslog-bus-loss.log").read_text())
    assert events(found) == [
        ("aer", "0000:c1:00.0", None),
        ("xid", "0000:c1:00.0", 79),  # and not a second time as gpu_lost, nor as the detector's quotation
        ("xid", "0000:c1:00.0", 154),
        ("xid", "0000:c1:00.0", 119),
        ("sxid", "0000:06:00.0", 20034),
    ]
    assert {o.subject.host for o in found} == {"gpu-112"}
    values = {o.fact: o.value for o in found if isinstance(o.value, str)}
    assert values == {"gpu.uuid": "GPU-0d3adbee-0000-4000-8000-00000000c100", "gpu.serial": "1650000000112"}
    window = none_seen(found)["gpu-112", "oom_kill"].window
    assert window is not None
    assert window[1] - window[0] == (20 * 60 + 30) * 10**9


def test_a_clean_boot() -> None:
    found = read((CAPTURES / "dmesg-clean.log").read_text(), "gpu-9")
    assert events(found) == [
        ("boot", "gpu-9", None),
        ("driver_loaded", "gpu-9", None),
        ("link_carrier", "ens1np0", None),
    ]
    assert [o.value for o in found if o.fact == "node.driver.version"] == ["570.86.15"]
    assert [o.value for o in found if o.fact == "log.kernel.truncated_head"] == [False]
    silent = none_seen(found)
    assert {fact for _, fact in silent} == set(kernel_log.KERNEL_EVENTS)
    xid = silent["gpu-9", "xid"]
    assert (xid.clock, xid.window) == (Clock.BOOT, (0, 14310010000))


def test_pstore_parts_are_newest_first() -> None:
    found = read((CAPTURES / "pstore-panic.txt").read_text())
    assert events(found) == [("kernel_panic", "", None), ("xid", "0000:4f:00.0", 79), ("kernel_oops", "", None)]
    assert [o.at for o in found if o.fact == "xid" and o.at and o.value] == [7300900100000]


@each(
    "text",
    [
        "LOG:  transaction xid 79 committed after Fix xid workaround",
        "NVRM: Xid error: xyz, invalid data",
        "sudo grep Xid /var/log/syslog\nsudo dmesg -T | grep Xid",
        "grep 'NVRM: Xid (PCI:0000:3b:00): 79' /var/log/syslog",
        "Mar 1 00:00:00 n sudo: u : COMMAND=/bin/dmesg NVRM: Xid (PCI:0000:3b:00): 79, x",
        "An Xid (see the table below): 13 is often the application's fault",
        "Mar 1 00:00:00 n systemd[1]: Started nvidia-persistenced.service - NVIDIA Persistence Daemon.",
        "Mar 1 00:00:00 n systemd[1]: Stopping nvidia-fabricmanager.service - NVIDIA fabric manager service...",
        "Mar 1 00:00:00 n dhclient[7]: DHCPACK of 10.0.0.7 (xid=0x79)",
        "If the GPU has fallen off the bus, reboot the node.",
        "RuntimeError: CUDA error: out of memory",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 15.00 GiB",
        "Mar 1 00:00:00 n app[7]: Out of memory: Killed process 7 (x) total-vm:1kB, anon-rss:1kB",
        "Mar 1 00:00:00 n app[7]: BUG: soft lockup - CPU#1 stuck for 23s! [x:7]",
        "[8.4] nvidia-nvlink: Nvlink Core is being initialized, major device number 511",
        "[8.4] nvidia: module verification failed: signature and/or required key missing - tainting kernel",
        "[8.4] NVRM:     -1    4115 NVLINK_INBAND_RECEIVE 0x0 0x0 0x0 0x0      4us fail",
        "Mar 1 00:00:00 n systemd-networkd[1]: cali0123456789a: Lost carrier",
        "[8.4] docker0: port 1(veth12) entered disabled state\n[8.5] veth12: Link is Down",
        "[8.4] Lustre: Mounted scratch-client",
    ],
)
def test_quiet(text: str) -> None:
    assert events(read(text)) == []


def test_a_text_without_kernel_output_covers_nothing() -> None:
    for text in (
        "",
        "hello\nworld",
        "Mar  3 12:00:00 n7 app[7]: started",
        f'{{"message": "{XID}"}}',
        f"agent saw {XID}",
    ):
        found = read(text, "n7")
        assert readable(found).status is Status.FAILED
        assert readable(found).detail
        assert ("n7", "xid") not in none_seen(found)


def test_a_system_log_covers_daemons_and_dmesg_does_not() -> None:
    syslog = read(f"Mar  3 12:00:00 n7 kernel: {XID}\nMar  3 12:00:09 n7 systemd[1]: Started x.")
    assert ("n7", "fm_failed") in none_seen(syslog)
    assert len([o for o in syslog if o.status is Status.NONE_SEEN and o.fact == "link_carrier"]) == 1
    assert ("", "fm_failed") not in none_seen(read(f"[1.0] {XID}"))


def test_each_host_of_a_central_log_has_its_own_window() -> None:
    found = read(
        "Mar  3 12:00:00 a kernel: usb 1-1: new device\nMar  3 12:00:10 b kernel: usb 1-1: new device\n"
        "Mar  3 12:00:20 a kernel: usb 1-2: new device"
    )
    spans = {host: o.window for (host, fact), o in none_seen(found).items() if fact == "xid"}
    assert {host: (w[1] - w[0]) // 10**9 for host, w in spans.items() if w} == {"a": 20, "b": 0}


def test_the_name_localhost_is_no_name() -> None:
    [xid] = [o for o in read(f"Mar  3 12:00:00 localhost kernel: {XID}", "gpu-3") if o.fact == "xid" and o.value]
    assert xid.subject.host == "gpu-3"


def test_a_line_without_a_time_has_none() -> None:
    found = read(XID)
    assert none_seen(found)["", "aer"].window is None
    assert none_seen(found)["", "aer"].clock is Clock.NONE


def test_a_wrapped_ring_buffer_is_told() -> None:
    assert [o.value for o in read(f"[86400.0] {XID}") if o.fact == "log.kernel.truncated_head"] == [True]


def test_a_lost_gpu_without_its_xid_is_an_event_of_its_own() -> None:
    lost = "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus."
    assert events(read(f"[1.0] {lost}")) == [("gpu_lost", "0000:3b:00.0", None)]
    assert events(read(f"[1.0] {XID}\n[1.0] {lost}")) == [("xid", "0000:3b:00.0", 79)]
    assert events(read(f"[1.0] {XID}\n[9000.0] {lost}")) == [
        ("xid", "0000:3b:00.0", 79),
        ("gpu_lost", "0000:3b:00.0", None),
    ]


def test_a_gpu_number_is_tied_to_its_address_by_the_log() -> None:
    text = (
        "[1.0] NVRM: Xid (PCI:0000:9b:00): 119, pid=7, name=x, Timeout after 6s of waiting for RPC response from GPU4 GSP!\n"
        + "[2.0] usb\n" * 9
        + "[900.0] NVRM: GPU4 _kgspRpcRecvPoll: GSP RM heartbeat timed out"
    )
    assert events(read(text))[-1] == ("gsp_heartbeat_timeout", "0000:9b:00.0", None)


def test_two_neighbours_leave_the_gpu_open() -> None:
    text = (
        "[1.0] NVRM: Xid (PCI:0000:9b:00): 13, x\n[1.0] NVRM: Xid (PCI:0000:9c:00): 13, x\n"
        "[1.0] NVRM: GPU4 _kgspRpcRecvPoll: GSP RM heartbeat timed out"
    )
    assert events(read(text))[-1] == ("gsp_heartbeat_timeout", "instance:4", None)


def test_a_board_without_a_serial_number() -> None:
    text = "[1.0] NVRM: GPU at PCI:0000:01:00: GPU-00000000-1111-2222-3333-444444444444\n[1.0] NVRM: GPU Board Serial Number: 0"
    [serial] = [o for o in read(text) if o.fact == "gpu.serial"]
    assert serial.status is Status.UNSUPPORTED


def test_orphaned_details_of_an_sxid_stand_for_it() -> None:
    detail = (
        "[1.0] nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 20034, Severity 1 Engine instance 60 Sub-engine instance 00"
    )
    main = "[2.0] nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 20034, Fatal, Link 37 LTSSM Fault Up"
    assert events(read(detail)) == [("sxid", "0000:07:00.0", 20034)]
    assert events(read(f"{detail}\n{main}")) == [("sxid", "0000:07:00.0", 20034)]


def test_a_storm_of_corrected_errors_is_one_event_a_record() -> None:
    record = (
        "[{n}.0] pcieport 0000:00:01.1: AER: Corrected error received: 0000:00:01.1\n"
        "[{n}.0] pcieport 0000:00:01.1: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)\n"
        "[{n}.0] pcieport 0000:00:01.1:   device [8086:2030] error status/mask=00000080/00002000"
    )
    found = read("\n".join(record.format(n=n) for n in range(40)))
    bits = [o.value.get("bits") for o in found if o.fact == "aer" and isinstance(o.value, Event)]
    assert bits == ["BadDLLP"] * 40


def test_the_excerpt_of_a_very_long_line_shows_the_event() -> None:
    [xid] = [o for o in read(f"agent {'y' * 30_000} {XID} {'z' * 30_000}") if o.fact == "xid" and o.value]
    assert "Xid (PCI:0000:3b:00): 79" in xid.excerpt
    assert len(xid.excerpt) <= 400


def test_sniff() -> None:
    for name in ("syslog-bus-loss.log", "dmesg-clean.log", "pstore-panic.txt"):
        assert kernel_log.sniff((CAPTURES / name).read_text()) >= 50
    assert kernel_log.sniff((CAPTURES / "fabricmanager-start.log").read_text()) == 0
    assert kernel_log.sniff("GPU 0: NVIDIA H100\n+-----+\n| NVIDIA-SMI 550 |") == 0
    assert kernel_log.sniff("") == 0
