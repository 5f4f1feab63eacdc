"""How readings are written, and which stand out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.live.frames import METRICS, Gpu, Proc
from assistant.live.words import NONE, nice, program, slowed, stands_out, value, with_limit


def test_readings_have_their_unit() -> None:
    assert value("power", 698.4) == "698 W"
    assert value("memory_used", 61.25 * 2**30) == "61.2 GiB"
    assert value("pcie_rx", 12.34e9) == "12.3 GB/s"
    assert value("pcie_rx", 0.0) == "0 B/s"
    assert value("ecc_uncorrected", 3) == "3"
    assert with_limit("power", 698, 700) == "698/700 W"
    assert with_limit("memory_used", 61.25 * 2**30, 80 * 2**30) == "61.2/80 GiB"
    assert with_limit("temperature", 71, None) == "71 °C"


@given(st.sampled_from(sorted(METRICS)), st.floats(0, 1e15))
def test_a_value_is_never_written_as_none_and_none_never_as_a_value(metric: str, number: float) -> None:
    assert value(metric, None) == NONE
    assert any(c.isdigit() for c in value(metric, number))


def test_beyond_its_own_limit_stands_out_and_a_busy_gpu_does_not() -> None:
    hot = Gpu("p", values={"temperature": 87, "temperature_limit": 87, "power": 700, "power_limit": 700})
    assert stands_out(hot, "temperature") == "error"
    assert stands_out(hot, "power") == ""
    assert stands_out(Gpu("p", values={"temperature": 95}), "temperature") == ""  # its limit is not known
    assert stands_out(Gpu("p"), "ecc_uncorrected") == ""
    assert stands_out(Gpu("p", values={"pcie_width": 8, "pcie_width_max": 16}), "pcie_width") == "warning"


def test_what_holds_the_clocks_down_is_weighed_by_the_catalogue() -> None:
    assert slowed(Gpu("p")) == ""
    assert slowed(Gpu("p", reasons=("sw_power_cap",))) == "info"
    assert slowed(Gpu("p", reasons=("sw_power_cap", "hw_thermal_slowdown"))) == "warning"


@pytest.mark.parametrize(("command", "shown"), [
    ("/opt/env/bin/python -u /home/a/train.py --rank 0", "train.py --rank 0"), ("python3.11 -m torch.run x", "torch.run x"),
    ("/usr/bin/nvcuvid-worker --gpu 1", "nvcuvid-worker --gpu 1"), ("python", "python"), ("python -c pass", "python -c pass"), ("", "name"),
])  # fmt: skip
def test_a_process_is_called_by_what_it_runs(command: str, shown: str) -> None:
    assert program(Proc(1, "name", command)) == shown


@given(st.floats(0, 1e15))
def test_the_upper_edge_is_round_and_above(top: float) -> None:
    edge = nice(top)
    assert edge >= top
    assert str(int(edge)).rstrip("0") in ("1", "2", "5")
