from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Status
from probes.parse.nvlink_errors import COUNTERS, FORMAT
from tests.probes.parse.smi_case import (
    CONTEXT,
    all_of,
    capture,
    check_any,
    check_cut,
    one,
    parse,
    shuffled_lines,
    status,
    value,
)  # fmt: skip

NAMES = ("smi/nvlink-e.txt", "smi/nvlink-e-blackwell.txt")


def test_counters_up_to_hopper() -> None:
    got = parse(FORMAT, NAMES[0])
    assert value(got, "link.errors.replay", "1") == 12
    assert value(got, "link.errors.recovery", "1") == 1
    assert value(got, "link.errors.crc_flit", "0") == 0
    assert status(got, "link.errors.crc_flit", "1") is Status.UNSUPPORTED
    lost = one(got, "link.errors.replay", "17")
    assert lost.status is Status.FAILED
    assert "all bits set" in lost.detail


def test_counters_and_rates_of_blackwell() -> None:
    got = parse(FORMAT, NAMES[1])
    assert value(got, "link.errors.rx") == 3
    assert value(got, "link.errors.symbol") == 9
    assert value(got, "link.recovery.failed") == 1
    assert value(got, "link.ber.symbol") == 2e-11
    rate = value(got, "link.ber.effective")
    assert isinstance(rate, float)
    assert 0 < rate < 1e-250


def test_a_rate_above_one_is_no_rate() -> None:
    got = FORMAT.parse(capture(NAMES[1]).replace("2e-11", "35"), CONTEXT)
    assert status(got, "link.ber.symbol") is Status.FAILED


def test_an_error_of_the_query_is_told() -> None:
    text = "GPU 0: NVIDIA H900 (UUID: GPU-11111111-2222-3333-4444-555555555555)\nNVML: Unable to retrieve NVLink error counters: GPU is lost\n"
    got = FORMAT.parse(text, CONTEXT)
    assert status(got, "link.errors.replay", "all") is Status.FAILED
    assert value(got, "gpu.nvml.reachable") is False


def test_other_counters_are_left_out() -> None:
    got = parse(FORMAT, NAMES[1])
    assert not [o for o in got if "Tx packets" in o.excerpt or "FEC" in o.excerpt]
    assert {o.fact for o in got if o.fact.startswith("link.")} <= set(COUNTERS.values())
    assert len(all_of(got, "gpu.index")) == 1


def test_recognition() -> None:
    assert [FORMAT.sniff(capture(name)) for name in NAMES] == [100, 100]
    assert FORMAT.sniff("Link 0: Replay Errors: 0\n") == 85
    for other in ("smi/nvlink-s.txt", "smi/hopper-590-sick.txt", "dcgm/nvlink-e.txt"):
        assert FORMAT.sniff(capture(other)) == 0, other


@given(st.sampled_from(NAMES), st.integers(0, 10**6))
def test_any_cut_is_answered(name: str, at: int) -> None:
    check_cut(FORMAT, name, at)


@given(shuffled_lines(NAMES))
def test_any_text_is_answered(text: str) -> None:
    check_any(FORMAT, text)
