"""The box of ``amd-smi`` without a subcommand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Status
from probes.parse.amd_smi import FORMAT
from probes.whole import Whole, whole
from tests.probes.parse.smi_case import CONTEXT, capture

TEXT = capture("vendor/amd-smi-box.txt")


def test_each_gpu_is_under_its_address_with_its_errors() -> None:
    assert FORMAT.sniff(TEXT) == 95
    got = {(o.subject.id, o.fact): o for o in FORMAT.parse(TEXT, CONTEXT)}
    first, second = "0000:07:00.0", "0000:17:00.0"
    assert [got[gpu, "gpu.ras.uncorrected"].value for gpu in (first, second)] == [0, 3]
    assert (got[first, "gpu.temperature.hotspot"].value, got[first, "gpu.utilization.core"].value) == (61, 98)
    assert (got[first, "gpu.power.draw"].value, got[second, "gpu.power.limit"].value) == (512.0, 1000.0)
    assert got[second, "gpu.temperature.hotspot"].status is Status.UNSUPPORTED, "N/A is no temperature"
    assert "gpu.ras.corrected" not in {fact for _, fact in got}, "the box has no column for them"


@given(st.integers(9, 900))
def test_a_box_that_is_cut_is_broken_or_not_this_format(end: int) -> None:
    part = TEXT[: TEXT.index("0000:17:00.0") + 1][: 700 + end]
    assert whole(part)[0] is Whole.BROKEN or not FORMAT.sniff(part)
