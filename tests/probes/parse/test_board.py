"""The board and the clock: memory modules from dmidecode, time services, and the document of the collector `platform`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Observation, Status
from probes.base import Context, DocumentFormat, best
from probes.parse import dmidecode, platform_snapshot, time_service
from probes.registry import document_formats
from tests.cases import each
from tests.probes.parse.smi_case import CONTEXT, all_of, capture, parse, status, value
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

DMI, TIME, PLATFORM = dmidecode.FORMAT, time_service.FORMAT, platform_snapshot.FORMAT
FILES = {
    DMI: ("dmidecode-healthy.txt", "dmidecode-sick.txt"),
    TIME: (
        "chronyc-healthy.txt",
        "chronyc-far-off.txt",
        "chronyc-local.txt",
        "chronyc-nothing.txt",
        "timesync.txt",
        "pmc.txt",
    ),
    PLATFORM: ("platform-healthy.json", "platform-sick.json"),
}


@each(("form", "name"), [(form, name) for form, names in FILES.items() for name in names])
def test_each_capture_is_recognised_as_what_it_is(form: DocumentFormat, name: str) -> None:
    assert best(document_formats(), capture(f"board/{name}")[:65536]) is form
    assert parse(form, f"board/{name}")


@pytest.mark.parametrize("form", FILES)
def test_other_texts_are_not_taken(form: DocumentFormat) -> None:
    for text in ("", "{}", "a: b\n", "Reference ID : x\n", '{"schema": "gpudiag/system/1"}'):
        assert form.sniff(text) == 0
        assert form.parse(text, CONTEXT) == []


# --- memory modules ------------------------------------------------------------------------


def test_memory_that_is_as_it_should_be_and_a_missing_module() -> None:
    well, ill = parse(DMI, "board/dmidecode-healthy.txt"), parse(DMI, "board/dmidecode-sick.txt")
    assert (value(well, "node.memory.slots"), value(well, "node.memory.modules")) == (8, 8)
    assert (value(well, "node.memory.channels"), value(well, "node.memory.channels.empty")) == (8, ())
    assert (value(well, "node.memory.sockets.uneven"), value(ill, "node.memory.sockets.uneven")) == (False, True)
    assert value(ill, "node.memory.channels.empty") == ("socket 1 channel C",)
    assert (value(ill, "node.memory.speed"), value(ill, "node.memory.speed.rated")) == (4400, 4800)
    assert value(well, "node.memory.module_kinds") == ("64 GB DDR5",)


@each(
    ("bank", "locator", "place"),
    [
        ("P0 CHANNEL A", "DIMM 0", ("0", "A")), ("P1_Node1_Channel3_Dimm0", "CPU2_DIMM_D1", ("1", "3")), ("Not Specified", "A7", ("A", "7")),
        ("NODE 1 CHANNEL 2 DIMM 0", "P1-DIMMC1", ("1", "2")), ("", "CPU0_C1D0", ("0", "1")), ("_Node0_", "P2-DIMMF2", ("2", "F")),
    ],
)  # fmt: skip
def test_slots_tell_their_channel(bank: str, locator: str, place: tuple[str, str]) -> None:
    slot = dmidecode._Slot({"Bank Locator": bank, "Locator": locator})
    found = next(m for pattern in dmidecode._PLACES if (m := pattern.search(slot.place)))
    assert (found["socket"], found["channel"]) == place


def test_where_one_slot_is_named_another_way_nothing_is_said_of_channels() -> None:
    text = capture("board/dmidecode-healthy.txt").replace("P0 CHANNEL B", "BANK 1", 1)
    got = DMI.parse(text, CONTEXT)
    assert value(got, "node.memory.modules") == 8
    assert all_of(got, "node.memory.channels") == []


def test_tables_that_only_root_reads() -> None:
    text = "# dmidecode 3.4\n/sys/firmware/dmi/tables/smbios_entry_point: Permission denied\nCan't read memory from /dev/mem\n"
    assert status(DMI.parse(text, CONTEXT), "node.memory.slots") is Status.DENIED
    assert (
        status(
            DMI.parse("# dmidecode 3.4\n# No SMBIOS nor DMI entry point found, sorry.\n", CONTEXT), "node.memory.slots"
        )
        is Status.UNSUPPORTED
    )


# --- the clock -----------------------------------------------------------------------------


def test_offsets_are_told_in_milliseconds_and_without_a_sign() -> None:
    got = parse(TIME, "board/chronyc-healthy.txt")
    assert (value(got, "node.time.offset"), value(got, "node.time.distance")) == (0.006523, 7.920248)
    assert (value(got, "node.time.source"), value(got, "node.time.stratum")) == ("192.0.2.1", 3)
    assert value(parse(TIME, "board/chronyc-far-off.txt"), "node.time.offset") == 3201.4
    sync = parse(TIME, "board/timesync.txt")
    assert (value(sync, "node.time.offset"), value(sync, "node.time.distance")) == (1.213, 16.486)
    assert value(parse(TIME, "board/chronyc-local.txt"), "node.time.followed") is True


def test_a_grandmaster_is_followed_or_it_is_this_machine() -> None:
    got = parse(TIME, "board/pmc.txt")
    assert (value(got, "node.time.offset"), value(got, "node.time.source")) == (0.000412, "001122.fffe.334455")
    assert TIME.parse(capture("board/pmc.txt").replace("true", "false"), CONTEXT) == []


def test_without_a_source_there_is_no_offset() -> None:
    got = parse(TIME, "board/chronyc-nothing.txt")
    assert value(got, "node.time.followed") is False
    assert status(got, "node.time.offset") is Status.UNSUPPORTED
    silent = "       Server: n/a (ntp.example.org)\nPoll interval: 0 (min: 32s; max 34min 8s)\n Packet count: 0\n"
    assert value(TIME.parse(silent, CONTEXT), "node.time.followed") is False
    assert status(TIME.parse("506 Cannot talk to daemon\n", CONTEXT), "node.time.followed") is Status.FAILED


@given(st.floats(0, 1e6), st.sampled_from([("us", 0.001), ("ms", 1.0), ("s", 1000.0)]), st.sampled_from(["", "+", "-"]))
def test_spans_of_time(number: float, unit: tuple[str, float], sign: str) -> None:
    assert time_service._span(f"{sign}{number:.3f}{unit[0]}") == pytest.approx(round(number, 3) * unit[1], abs=1e-6)


# --- the collector's document ----------------------------------------------------------------


def document(files: dict[str, Any], **more: Any) -> list[Observation]:
    text = json.dumps({"schema": "gpudiag/platform/1", "host": "n7", "at_ns": 5, "boot_id": "", "files": files, **more})
    got = PLATFORM.parse(text, Context("x"))
    assert_in_vocabulary(got, PLATFORM)
    return got


def test_a_healthy_and_a_sick_board() -> None:
    well, ill = parse(PLATFORM, "board/platform-healthy.json"), parse(PLATFORM, "board/platform-sick.json")
    assert (value(well, "node.memory.errors.controllers"), value(well, "node.memory.errors.corrected")) == (2, 0)
    assert value(ill, "dimm.errors.corrected", "CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (mc0 dimm0)") == 4211
    assert (value(well, "node.cpu.microcode.versions"), value(ill, "node.cpu.microcode.versions")) == (1, 2)
    assert (value(well, "node.numa.per_socket"), value(ill, "node.numa.without_memory")) == (1.0, ("node1",))
    assert (value(well, "node.cpu.idle.deepest"), value(well, "node.cpu.idle.latency")) == ("C1E", 2.0), (
        "C6 is switched off"
    )
    assert (value(ill, "node.cpu.idle.deepest"), value(ill, "node.cpu.idle.latency")) == ("C6", 290.0)
    assert (value(well, "node.hugepages.unused.share"), value(ill, "node.hugepages.unused.share")) == (0.0, 31.25)
    assert (value(well, "node.pcie.aspm"), value(ill, "node.pcie.aspm")) == ("default", "powersave")
    assert (value(well, "drive.state", "nvme0"), value(ill, "drive.state", "nvme1")) == ("live", "dead")
    assert (value(well, "raid.members.missing"), value(ill, "raid.members.missing")) == (0, 1)
    assert value(ill, "sensor.state", "k10temp 0000:00:18.3 Tctl") == "critical"
    assert value(well, "sensor.temperature", "nvme nvme0 Composite") == 38.85
    assert [o.subject.id for o in all_of(well, "sensor.temperature.margin")] == [
        "k10temp 0000:00:18.3 Tctl",
        "nvme nvme0 Composite",
    ]
    assert value(ill, "node.crash.records") == 2


def test_what_is_not_there_says_nothing_and_what_hung_is_no_absence() -> None:
    empty = document({})
    assert value(empty, "node.memory.errors.controllers") == 0
    assert status(empty, "node.memory.errors.corrected") is Status.UNSUPPORTED
    assert status(empty, "node.numa.with_cpus") is Status.UNSUPPORTED
    hung = document({}, hung="/sys/devices/system/edac/mc/mc0/ce_count")
    assert status(hung, "node.memory.errors.controllers") is Status.TIMEOUT
    assert all_of(hung, "drive.count") == []
    denied = document({"/sys/devices/system/edac/mc": {"error": "EACCES: Permission denied"}})
    assert status(denied, "node.memory.errors.controllers") is Status.DENIED
    locked = document({"/sys/fs/pstore": {"error": "EACCES: Permission denied"}})
    assert status(locked, "node.crash.records") is Status.DENIED


def test_a_limit_that_is_none_is_not_taken_for_one() -> None:
    folder = "/sys/class/hwmon/hwmon0"
    got = document({f"{folder}/name": "nvme", f"{folder}/temp2_input": "40850", f"{folder}/temp2_crit": "65261850"})
    assert value(got, "sensor.temperature") == 40.85
    assert all_of(got, "sensor.state") == []


def test_an_input_of_a_board_chip_that_is_not_connected_is_no_heat() -> None:
    folder = "/sys/class/hwmon/hwmon0"
    got = document({f"{folder}/name": "nct6798", f"{folder}/temp3_input": "127000", f"{folder}/temp3_crit": "125000"})
    assert value(got, "sensor.temperature") == 127.0
    assert all_of(got, "sensor.state") == []


@given(st.dictionaries(st.sampled_from(
    ["/sys/devices/system/edac/mc/mc0/mc_name", "/sys/devices/system/edac/mc/mc0/ce_count", "/sys/devices/system/edac/mc/mc0/dimm0/dimm_ce_count",
     "/sys/class/hwmon/hwmon0/name", "/sys/class/hwmon/hwmon0/temp1_input", "/sys/class/hwmon/hwmon0/fan1_input", "/sys/block/md0/md/level",
     "/sys/block/md0/md/degraded", "/sys/devices/system/node/node0/cpulist", "/sys/devices/system/node/node0/meminfo", "/proc/meminfo",
     "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
     "/sys/class/nvme/nvme0/state", "/sys/fs/pstore", "/sys/devices/system/cpu/cpu0/cpuidle/state1/latency"]),
    st.text(max_size=12) | st.integers() | st.none() | st.just({"error": "EIO: x"}) | st.just({"skipped": "y"})))  # fmt: skip
def test_no_files_make_the_parser_raise(files: dict[str, Any]) -> None:
    document(files)


@given(
    st.sampled_from([name for names in FILES.values() for name in names]), st.integers(0, 8000), st.binary(max_size=8)
)
def test_no_damage_makes_a_parser_raise(name: str, at: int, junk: bytes) -> None:
    data = capture(f"board/{name}").encode()
    text = (data[: at % len(data)] + junk + data[at % len(data) + len(junk) :]).decode("utf-8", "replace")
    for form in FILES:
        assert_in_vocabulary(form.parse(text, CONTEXT), form)


def test_slots_that_are_only_numbered_tell_sockets_and_no_channels() -> None:
    rows = [(socket, i) for socket in "AB" for i in range(1, 17)]
    blocks = (
        f"Handle 0x11{n:02X}, DMI type 17, 92 bytes\nMemory Device\n\tSize: {'32 GB' if i < 9 else 'No Module Installed'}\n"
        f"\tLocator: {socket}{i}\n\tBank Locator: Not Specified\n\tType: DDR4\n"
        for n, (socket, i) in enumerate(rows)
    )
    got = DMI.parse("# dmidecode 3.3\n" + "\n".join(blocks), CONTEXT)
    assert (value(got, "node.memory.modules"), value(got, "node.memory.sockets.uneven")) == (16, False)
    assert not [o for o in got if o.fact.startswith("node.memory.channels")]


@each(
    "said, service, expected",
    [
        ("System clock synchronized: no", "NTP service: inactive", {"node.clock.synchronised": False, "node.service.time_sync.state": "stopped"}),
        ("System clock synchronized: yes", "NTP service: n/a", {"node.clock.synchronised": True, "node.service.time_sync.state": "not_installed"}),
        ("NTP synchronized: no", "NTP enabled: yes", {"node.clock.synchronised": False}),
    ],
)  # fmt: skip
def test_what_timedatectl_says_of_the_clock(said: str, service: str, expected: dict[str, object]) -> None:
    text = f"      Local time: Mon 2026-11-30 20:11:33 UTC\n  Universal time: Mon 2026-11-30 20:11:33 UTC\n{said:>30}\n{service:>24}\n"
    assert TIME.sniff(text) == 90
    assert {o.fact: o.value for o in TIME.parse(text, CONTEXT)} == expected
