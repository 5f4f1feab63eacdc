"""NV_STATUS: numbers and names of NVIDIA's driver, as its lines carry them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.catalog.nv_status import NvStatus, all_statuses, init_failure, nv_status, status_in
from tests.cases import each


@each(
    ("line", "name"),
    [
        ("Call timed out [NV_ERR_TIMEOUT] (0x00000065) returned from x", "NV_ERR_TIMEOUT"),
        ("failed (0x0000000F) returned from y", "NV_ERR_GPU_IS_LOST"),
        ("nvGpuOpsReportFatalError: status: 0x72", "NV_ERR_MEMORY_ERROR"),
        ("[NV_ERR_OF_THE_FUTURE] (0x00000062)", "NV_ERR_RESET_REQUIRED"),
    ],
)
def test_a_line_names_its_status(line: str, name: str) -> None:
    found = status_in(line)
    assert found is not None
    assert found.name == name


@each("line", ["Success [NV_OK] (0x00000000)", "at address 0x65", "(PCI:0000:65:00)", "0x62:0x65:1860", ""])
def test_other_numbers_are_none(line: str) -> None:
    assert status_in(line) is None


def test_the_three_numbers_of_a_failed_start() -> None:
    found = init_failure("RmInitAdapter failed! (0x62:0x65:1860)")
    assert found is not None
    assert found.reason.en == "the GPU's firmware (GSP) did not start: the call timed out"
    assert init_failure("RmInitAdapter failed!") is None
    unknown = init_failure("(0xffff:0xfffe:1)")
    assert unknown is not None
    assert (unknown.reason.en, unknown.status) == ("", None)


@given(st.sampled_from(all_statuses()))
def test_number_and_name_agree(s: NvStatus) -> None:
    assert nv_status(s.code) == s
    assert status_in(f"[{s.name}]") == s
    assert status_in(f"failed (0x{s.code:08X})") == s
