from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.metrics import metrics
from knowledge.observation import Clock, Event, Scope, Status
from probes.base import Context
from probes.parse.dcgm_scrape import FORMAT
from tests.probes.parse.smi_case import (
    CONTEXT,
    all_of,
    capture,
    check_any,
    check_cut,
    events,
    one,
    parse,
    shuffled_lines,
    status,
    value,
)  # fmt: skip

NAMES = ("dcgm/exporter-k8s.prom", "dcgm/exporter-mig-1x.prom")
FIRST, SECOND = "0000:3b:00.0", "0000:af:00.0"
UUID = "GPU-11111111-2222-3333-4444-555555555555"


def test_gpus_are_named_by_their_slot_and_tied_to_uuid_and_index() -> None:
    got = parse(FORMAT, NAMES[0])
    assert value(got, "gpu.uuid", FIRST) == UUID
    assert [value(got, "gpu.index", s) for s in (FIRST, SECOND)] == [0, 1]
    assert value(got, "gpu.clock.sm", FIRST) == 1980
    stamped = one(got, "gpu.clock.sm", SECOND)
    assert (stamped.at, stamped.clock) == (1784000000123 * 10**6, Clock.REALTIME)
    assert stamped.subject.host == "node-a"
    assert value(got, "node.driver.version") == "590.10.01"


def test_the_last_xid_is_a_state_and_a_counted_one_an_event() -> None:
    got = parse(FORMAT, NAMES[0])
    assert value(got, "gpu.xid.last", FIRST) == 79
    assert value(got, "gpu.xid.last", SECOND) == 0
    assert not all_of(got, "xid")
    assert events(got, "xid_exported", FIRST) == [Event(48, {"count": 3, "window_ms": 300000})]
    assert status(got, "xid_exported", SECOND) is Status.NONE_SEEN


def test_sentinels_and_nan_are_no_readings() -> None:
    got = parse(FORMAT, NAMES[0])
    assert status(got, "gpu.temperature.memory", FIRST) is Status.UNSUPPORTED
    assert status(got, "gpu.temperature.core", FIRST) is Status.FAILED


def test_the_help_line_tells_the_unit_of_a_violation() -> None:
    got = parse(FORMAT, NAMES[0])
    assert value(got, "gpu.violation.power", FIRST) == 5000  # us
    assert value(got, "gpu.violation.thermal", FIRST) == 5  # 5000 ns
    assert value(parse(FORMAT, NAMES[1]), "gpu.violation.power") == 1200  # 1.x counted us


def test_bits_and_lanes() -> None:
    got = parse(FORMAT, NAMES[0])
    assert {o.fact for o in got if o.fact.startswith("gpu.clock.event.") and o.value} == {
        "gpu.clock.event.hw_slowdown", "gpu.clock.event.hw_thermal"}  # fmt: skip
    lane = one(got, "link.errors.crc_flit")
    assert (lane.value, lane.subject.id, lane.subject.scope) == (7, "3", Scope.LINK)


def test_health_watches() -> None:
    got = parse(FORMAT, NAMES[0])
    assert events(got, "dcgm_health", FIRST) == [
        Event(None, {"system": "pcie", "status": "warn", "message": "DCGM_FR_PCI_REPLAY_RATE"})]  # fmt: skip
    assert status(got, "dcgm_health", SECOND) is Status.NONE_SEEN


def test_pods() -> None:
    got = parse(FORMAT, NAMES[0])
    assert value(got, "exporter.pod_labels.present") is True
    assert value(got, "gpu.pod_attributed", FIRST) is True
    assert value(got, "gpu.pod_attributed", SECOND) is False
    assert value(got, "pod.uses_gpu", 'team "a"/train-0') == f"gpu:{FIRST}"


def test_a_cut_line_is_counted_and_gives_no_value() -> None:
    got = parse(FORMAT, NAMES[0])
    assert value(got, "exporter.malformed_lines") == 1
    assert not all_of(got, "gpu.memory.used")


def test_mig_instances_of_a_1x_exporter_without_pod_labels() -> None:
    got = parse(FORMAT, NAMES[1])
    assert value(got, "mig.activity.graphics", "7") == 25.0
    assert value(got, "mig.profile", "8") == "1g.10gb"
    assert value(got, "mig.memory.used", "7") == 4096
    missing = one(got, "mig.memory.used", "8")
    assert (missing.status, missing.value) == (Status.UNSUPPORTED, None)  # unknown, never 0
    assert value(got, "gpu.temperature.core") == 61  # of the whole GPU, whatever instance the series names
    assert value(got, "exporter.pod_labels.present") is False
    assert value(got, "gpu.pod_attributed") is False
    assert one(got, "mig.profile", "7").subject.up(Scope.GPU) == one(got, "gpu.uuid").subject


def test_the_name_of_the_exporters_pod_is_no_node() -> None:
    line = f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="{UUID}",Hostname="nvidia-dcgm-exporter-x7k2p"}} 40\n'
    assert one(FORMAT.parse(line, CONTEXT), "gpu.temperature.core").subject.host == "node-a"
    two = line + line.replace("x7k2p", "q9z4m").replace("-5555", "-6666")
    hosts = {o.subject.host for o in FORMAT.parse(two, Context()) if o.fact == "gpu.temperature.core"}
    assert len(hosts) == 2  # two exporters are two nodes, even if unnamed


def test_prometheus_renames_the_labels_of_the_workload() -> None:
    line = (
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="{UUID}",pod="exporter-1",namespace="monitoring",'
        f'exported_pod="train-1",exported_namespace="ml"}} 97\n'
    )
    got = FORMAT.parse(line, CONTEXT)
    assert one(got, "pod.uses_gpu").subject.id == "ml/train-1"
    bare = FORMAT.parse(line.replace('exported_pod="train-1"', 'exported_pod=""'), CONTEXT)
    assert value(bare, "gpu.pod_attributed") is False


def test_repeated_series_of_a_shared_gpu_stand_once() -> None:
    line = f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="{UUID}",pod="a"}} 97\n'
    got = FORMAT.parse(line + line.replace('"a"', '"b"'), CONTEXT)
    assert value(got, "gpu.utilization.core") == 97
    assert len(all_of(got, "pod.uses_gpu")) == 2


def test_unknown_numbers_of_an_enumeration_are_no_values() -> None:
    line = f'DCGM_FI_DEV_COMPUTE_MODE{{gpu="0",UUID="{UUID}"}} 17\n'
    assert status(FORMAT.parse(line, CONTEXT), "gpu.compute_mode") is Status.FAILED


def test_recognition() -> None:
    assert [FORMAT.sniff(capture(name)) for name in NAMES] == [100, 100]
    assert FORMAT.sniff("# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).\n") == 90
    for other in ("dcgm/gpu-exporter.prom", "dcgm/diag-v4.json", "smi/query-gpu.csv", "dcgm/health-v4.txt"):
        assert FORMAT.sniff(capture(other)) == 0, other
    assert FORMAT.sniff("node_load1 0.5\n") == 0


def test_provides_is_what_the_table_gives() -> None:
    table = {fact for m in metrics().all if m.exporter == "dcgm" for fact in m.facts()}
    assert table <= set(FORMAT.provides)


@given(st.sampled_from(NAMES), st.integers(0, 10**6))
def test_any_cut_is_answered(name: str, at: int) -> None:
    check_cut(FORMAT, name, at)


@given(shuffled_lines(NAMES))
def test_any_text_is_answered(text: str) -> None:
    check_any(FORMAT, text)
