"""Kinds of kernels: shares of their time, and nothing claimed of devices that the trace does not describe."""

from __future__ import annotations

import pytest

from probes.trace.breakdown import mix
from probes.trace.breakdown.mix import Mix
from probes.trace.columns import both, wanted
from probes.trace.windows import whole
from tests.trace_files import ALLREDUCE, ELEMENTWISE, GEMM, TraceFile, read

SGEMM = "volta_sgemm_128x128_tn"
V100 = {"deviceProperties": [{"id": 0, "name": "Tesla V100-SXM2-32GB", "numSms": 80, "computeMajor": 7}]}


def of(file: TraceFile) -> Mix:
    """The mix of a trace that holds kernels."""
    trace = read(file, both(mix.NEEDS, wanted(gpu="")))
    found = mix.mix(trace, whole(trace))
    assert found is not None
    return found


def test_shares_are_of_the_summed_kernel_time() -> None:
    file = TraceFile(head=V100).kernel(SGEMM, 0, 50).kernel(ELEMENTWISE, 60, 30).kernel(ALLREDUCE, 100, 18)
    m = of(file.kernel(ELEMENTWISE, 130, 2))
    assert m.kernel_ns == 100_000
    assert (m.plain, m.bytes_only, m.tiny) == (0.5, 0.32, 0.02)
    assert (m.plain_top, m.comm_top) == (SGEMM, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL")
    assert m.tensor_cores is True


def test_the_longest_kernel_is_none_that_spins_in_a_collective() -> None:
    m = of(TraceFile().kernel(ALLREDUCE, 0, 500).kernel(GEMM, 600, 30).kernel(SGEMM, 700, 10))
    assert m.top.startswith("sm90_xmma_gemm")
    assert m.top_share == 0.75
    alone = of(TraceFile().kernel(ALLREDUCE, 0, 500))
    assert (alone.top, alone.top_share) == ("", None)


@pytest.mark.parametrize(("grid", "share"), [((40, 1, 1), 1.0), ((41, 1, 1), 0.0), ((2, 5, 4), 1.0), ((8, 8, 8), 0.0)])
def test_a_kernel_underfills_the_gpu_with_half_as_many_blocks_as_multiprocessors(
    grid: tuple[int, ...], share: float
) -> None:
    assert of(TraceFile(head=V100).kernel(GEMM, 0, 10, grid=grid)).underfilled == share


def test_without_grid_or_description_nobody_knows_how_full_the_gpu_is() -> None:
    assert of(TraceFile(gpu="").kernel(GEMM, 0, 10)).underfilled is None
    assert of(TraceFile(head=V100).kernel(GEMM, 0, 10, grid=[])).underfilled is None
    assert of(TraceFile(head=V100).kernel(ALLREDUCE, 0, 10)).underfilled is None


@pytest.mark.parametrize(
    ("device", "known"),
    [
        ({"name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8}, True),
        ({"name": "Tesla P100-PCIE-16GB", "computeMajor": 6}, False),
        ({"name": "NVIDIA GeForce GTX 1660", "computeMajor": 7}, False),
        ({"name": "AMD Instinct MI300X", "computeMajor": 9}, True),
        ({"name": "gfx1030", "computeMajor": 10}, None),
        ({"name": "unheard of"}, None),
    ],
)
def test_tensor_cores_are_those_of_the_device(device: dict[str, object], known: bool | None) -> None:
    assert of(TraceFile(head={"deviceProperties": [device]}).kernel(GEMM, 0, 10)).tensor_cores is known


def test_code_of_the_compiler_is_known_by_kernels_and_by_ranges() -> None:
    assert not of(TraceFile().kernel(GEMM, 0, 10)).compiled
    assert not of(TraceFile().kernel("triton_attention_fwd", 0, 10)).compiled  # somebody's own Triton kernel
    assert of(TraceFile().kernel("triton_poi_fused_add_relu_3", 0, 10)).compiled
    assert of(TraceFile().kernel(GEMM, 0, 10).annotation("Torch-Compiled Region: 0/0", 0, 10)).compiled


def test_layout_conversions_are_counted() -> None:
    name = (
        "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true>(cudnn::ops::nchw2nhwc_params_t<float>)"
    )
    assert of(TraceFile().kernel(name, 0, 10).kernel(GEMM, 20, 30)).layout == 0.25


def test_no_kernels_have_no_mix() -> None:
    trace = read(TraceFile().memset(0, 5), mix.NEEDS)
    assert mix.mix(trace, whole(trace)) is None
