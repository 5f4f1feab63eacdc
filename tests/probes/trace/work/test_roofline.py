"""The roofline of whole traces: who owns which kernel, sides of the knee, batches, MFU, and what cannot be."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.trace.model import Roofline, Side, Window, Work
from probes.trace.reading.reader import read
from probes.trace.work.roofline import NEEDS, roofline
from tests.trace_files import ELEMENTWISE, GEMM, TraceFile

BF16 = ["c10::BFloat16"] * 3
H100, V100 = "NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-16GB"


def product(
    file: TraceFile, at: int, m: int, k: int, n: int, us: int, number: int, kernel: str = GEMM, **op: Any
) -> TraceFile:
    """aten::linear > aten::addmm > a kernel."""
    dims = [[n], [m, k], [k, n]]
    return (file.op("aten::linear", at, 20, dims=[[m, k], [n, k], [n]], types=BF16)
            .op("aten::addmm", at + 2, 15, dims=dims, types=op.pop("types", BF16), **op)
            .launch(at + 5, 4, correlation=number).kernel(kernel, at + 100, us, correlation=number))  # fmt: skip


def found(file: TraceFile, path: Path, window: Window | None = None, **more: Any) -> Roofline:
    return roofline(read(file.save(path / "t.json"), NEEDS), window, **more)


def only(result: Roofline) -> Work:
    assert len(result.work) == 1
    return result.work[0]


def test_a_layer_that_calls_a_product_counts_once(tmp_path: Path) -> None:
    file = TraceFile(gpu=H100)
    for i in range(3):
        product(file, 1000 * i, 8192, 1024, 1024, 50, i + 1)
    work = only(found(file, tmp_path))
    assert (work.op, work.count, work.gpu_ns, work.flop) == ("aten::addmm", 3, 150_000, 3 * 2 * 8192 * 1024 * 1024)
    assert work.tflops == pytest.approx(2 * 8192 * 1024 * 1024 / 50e-6 / 1e12)
    assert (work.side, work.share, work.batch) == (Side.COMPUTE, 1.0, 8192)


def test_the_knee_batch_is_where_the_intensity_meets_the_knee(tmp_path: Path) -> None:
    result = found(product(TraceFile(gpu=H100), 0, 64, 4096, 4096, 60, 1), tmp_path)
    work = only(result)
    assert work.side is Side.MEMORY
    assert work.batch == 64
    assert work.batch_at_knee is not None
    assert result.knee is not None

    def intensity(m: int) -> float:
        return 2 * m * 4096 * 4096 / (2 * (m * 4096 + 4096 * 4096 + m * 4096))

    assert intensity(work.batch_at_knee) >= result.knee > intensity(work.batch_at_knee - 1)


def test_a_narrow_product_never_reaches_the_knee(tmp_path: Path) -> None:
    assert only(found(product(TraceFile(gpu=H100), 0, 64, 4096, 128, 60, 1), tmp_path)).batch_at_knee is None


def test_of_a_weights_gradient_the_inner_size_is_the_batch(tmp_path: Path) -> None:
    file = product(TraceFile(gpu=H100), 0, 512, 768, 3072, 60, 1)
    file.op("aten::mm", 1000, 20, dims=[[3072, 512], [512, 768]], types=BF16[:2])
    file.launch(1005, 4, correlation=2).kernel(GEMM, 1100, 60, correlation=2)
    assert [w.batch for w in found(file, tmp_path).work if w.op == "aten::mm"] == [512]


def test_kernels_around_a_product_are_not_its_work(tmp_path: Path) -> None:
    file = TraceFile(gpu=H100)
    values: dict[str, Any] = {"Concrete Inputs": ["", "", "", "", "0.", "False"]}
    file.op("aten::scaled_dot_product_attention", 0, 100, dims=[[2, 4, 64, 32]] * 3, types=BF16,
            **values)  # fmt: skip
    file.op("aten::copy_", 5, 10).launch(6, 3, correlation=1).kernel(ELEMENTWISE, 120, 30, correlation=1)
    file.op("vendor::attention", 20, 10).launch(22, 3, correlation=2).kernel("fmha_kernel", 150, 10, correlation=2)
    result = found(file, tmp_path)
    assert (only(result).gpu_ns, only(result).op) == (10_000, "aten::scaled_dot_product_attention")
    assert result.covered_share == pytest.approx(0.25)
    assert result.memory_bound_share == pytest.approx(0.75)  # the copy
    assert result.far_below_share == pytest.approx(0.25)  # an attention far too small for its GPU


def test_an_outer_operator_with_kernels_of_its_own_does_not_count_twice(tmp_path: Path) -> None:
    file = TraceFile(gpu=H100)
    file.op("aten::linear", 0, 50, dims=[[64, 32], [16, 32], [16]], types=BF16)
    file.launch(2, 2, correlation=1).kernel("bias_kernel_of_somebody", 60, 10, correlation=1)
    file.op("aten::mm", 10, 20, dims=[[64, 32], [32, 16]], types=BF16[:2])
    file.launch(12, 2, correlation=2).kernel(GEMM, 80, 10, correlation=2)
    result = found(file, tmp_path)
    assert (only(result).op, result.flop) == ("aten::mm", 2 * 64 * 32 * 16)
    assert result.covered_share == pytest.approx(0.5)


def test_faster_than_the_gpu_can_be_is_a_fault_and_no_figure(tmp_path: Path) -> None:
    result = found(product(TraceFile(gpu=H100), 0, 8192, 8192, 8192, 10, 1), tmp_path)
    work = only(result)
    assert work.tflops > 989.4
    assert (work.side, work.of_peak, result.flop) == (Side.UNKNOWN, None, 0)
    assert any("above the peak" in n.en for n in result.notes)


def test_an_algorithm_that_multiplies_less_is_no_fault(tmp_path: Path) -> None:
    file = TraceFile(gpu=V100)
    values: dict[str, Any] = {"Concrete Inputs": ["", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"]}
    file.op("aten::cudnn_convolution", 0, 20, dims=[[32, 256, 14, 14], [256, 256, 3, 3]], types=["float"] * 2, **values)
    file.launch(2, 4, correlation=1).kernel(
        "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", 50, 290, correlation=1
    )
    result = found(file, tmp_path, gpu="v100-sxm2-16")
    assert only(result).tflops > 15.7
    assert (only(result).side, only(result).of_peak) == (Side.COMPUTE, None)
    assert result.flop > 0
    assert any("Winograd" in n.en for n in result.notes)


def test_no_share_of_a_roof_is_above_what_clocks_explain(tmp_path: Path) -> None:
    work = only(found(product(TraceFile(gpu=H100), 0, 32, 1024, 1024, 1, 1), tmp_path))
    assert work.gbs < 3350  # less than one microsecond's worth of traffic
    served = only(
        found(
            product(TraceFile(gpu=V100), 0, 8, 4096, 4096, 10, 1, types=["c10::Half"] * 3), tmp_path, gpu="v100-sxm2-16"
        )
    )
    assert served.gbs > 900
    assert served.of_peak is None


def test_without_a_known_gpu_there_are_rates_and_no_verdicts(tmp_path: Path) -> None:
    result = found(product(TraceFile(gpu=""), 0, 512, 512, 512, 60, 1), tmp_path)
    assert (result.knee, result.peak_tflops, result.compute_bound_share) == (None, None, None)
    assert only(result).side is Side.UNKNOWN
    assert only(result).tflops > 0
    assert any("--gpu" in n.en for n in result.notes)
    assert found(product(TraceFile(gpu=""), 0, 512, 512, 512, 60, 1), tmp_path, gpu="h100-sxm").peak_tflops == 989.4


def test_a_gpu_that_is_not_known_is_told_with_those_of_like_names(tmp_path: Path) -> None:
    result = found(product(TraceFile(gpu=""), 0, 512, 512, 512, 60, 1), tmp_path, gpu="H1000")
    assert any("H1000" in n.en and "h100-sxm" in n.en and "h100-sxm" in n.zh for n in result.notes)


def test_a_slice_of_a_gpu_has_not_the_peaks_of_the_whole(tmp_path: Path) -> None:
    result = found(product(TraceFile(gpu=f"{H100} MIG 1g.10gb"), 0, 512, 512, 512, 60, 1), tmp_path)
    assert (result.knee, result.peak_tflops) == (None, None)
    assert any("are not known" in n.en for n in result.notes)


def test_the_roof_is_what_can_be_reached_where_the_vendor_says_so(tmp_path: Path) -> None:
    file = product(TraceFile(gpu=""), 0, 8192, 8192, 8192, 2000, 1)
    result = found(file, tmp_path, gpu="mi300x")
    assert only(result).of_peak == pytest.approx(2 * 8192**3 / 2e-3 / 708e12)
    assert result.peak_tflops == 1307.4
    assert any("708" in n.en for n in result.notes)
    better = found(product(TraceFile(gpu=""), 0, 8192, 8192, 8192, 1200, 1), tmp_path, gpu="mi300x")
    assert (only(better).of_peak, only(better).side) == (1.0, Side.COMPUTE)


def test_an_ambiguous_name_gives_only_what_all_agree_on(tmp_path: Path) -> None:
    result = found(product(TraceFile(gpu=""), 0, 512, 512, 512, 60, 1), tmp_path, gpu="A100")
    assert (result.peak_tflops, result.bandwidth_gbs, result.knee) == (312, None, None)
    assert any("differ" in n.en for n in result.notes)


@pytest.mark.parametrize(
    ("kernel", "gpu", "dtype"),
    [("ampere_sgemm_128x64_tn", "NVIDIA A100-SXM4-80GB", "fp32"),
     ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64x32", "NVIDIA A100-SXM4-80GB", "tf32"),
     ("nvjet_something_new", "NVIDIA A100-SXM4-80GB", "tf32"), ("nvjet_something_new", V100, "fp32")],
)  # fmt: skip
def test_fp32_is_tf32_only_where_the_kernel_or_the_gpu_allows(
    kernel: str, gpu: str, dtype: str, tmp_path: Path
) -> None:
    file = product(TraceFile(gpu=gpu), 0, 512, 512, 512, 600, 1, kernel, types=["float"] * 3)
    assert only(found(file, tmp_path)).dtype == dtype


def test_old_traces_without_types_take_the_format_from_the_kernel(tmp_path: Path) -> None:
    named = TraceFile(gpu=V100)
    product(named, 0, 512, 512, 512, 600, 1, "volta_sgemm_128x64_tn", types=[])
    assert only(found(named, tmp_path)).dtype == "fp32"
    nameless = product(TraceFile(gpu=V100), 0, 512, 512, 512, 600, 1, "magic", types=[])
    result = found(nameless, tmp_path)
    assert [w.op for w in result.work] == ["aten::linear"]  # whose types were recorded


def test_gradients_of_old_convolutions_are_found_around_their_halves(tmp_path: Path) -> None:
    file = TraceFile(gpu=V100)
    file.op("aten::cudnn_convolution_backward", 0, 90, dims=[[8, 64, 28, 28], [8, 64, 28, 28], [64, 64, 3, 3]])
    for i, half in enumerate(("input", "weight")):
        file.op(f"aten::cudnn_convolution_backward_{half}", 10 + 40 * i, 30, dims=[[], [8, 64, 28, 28], [64, 64, 3, 3]])
        file.launch(12 + 40 * i, 4, correlation=i + 1).kernel(
            "volta_scudnn_128x64_stridedB", 200 + 99 * i, 90, correlation=i + 1
        )
    work = only(found(file, tmp_path))
    assert (work.dtype, work.count, work.gpu_ns, work.flop) == ("fp32", 1, 180_000, 2 * 2 * 8 * 64 * 28 * 28 * 64 * 9)
    file.op(
        "aten::cudnn_convolution", 1000, 30, dims=[[8, 64, 28, 28], [64, 64, 3, 3], []]
    )  # no stride: the gradient tells
    file.launch(1005, 4, correlation=9).kernel("volta_scudnn_128x64_relu", 1100, 90, correlation=9)
    forward = [w for w in found(file, tmp_path).work if w.op == "aten::cudnn_convolution"]
    assert [w.flop * 2 for w in forward] == [work.flop]
    file.op("aten::cudnn_convolution_backward", 2000, 90, dims=[[8, 64, 28, 28], [8, 64, 14, 14], [64, 64, 3, 3]])
    assert not [w for w in found(file, tmp_path).work if w.op == "aten::cudnn_convolution"]  # two strides: it does not


def test_nothing_recorded_is_said_and_not_zero(tmp_path: Path) -> None:
    bare = TraceFile(gpu=H100).launch(0, 4, correlation=1).kernel(GEMM, 10, 50, correlation=1)
    result = found(bare, tmp_path)
    assert (result.gemm_tflops, result.compute_bound_share, result.work) == (None, None, ())
    assert result.notes
    shapeless = (
        TraceFile(gpu=H100).op("aten::mm", 0, 20).launch(2, 4, correlation=1).kernel(GEMM, 10, 50, correlation=1)
    )
    assert any("record_shapes" in n.en for n in found(shapeless, tmp_path).notes)
    assert found(TraceFile(gpu=H100).op("aten::mm", 0, 20), tmp_path).memory_bound_share is None


def test_attention_of_unknown_lengths_is_told_and_not_guessed(tmp_path: Path) -> None:
    file = product(TraceFile(gpu=H100), 0, 8192, 1024, 1024, 50, 1)
    file.op("vllm::unified_attention_with_output", 1000, 20, dims=[[8192, 64, 64]] * 4, types=["c10::BFloat16"] * 4)
    file.launch(1005, 4, correlation=2).kernel("flash_fwd_splitkv_kernel", 1100, 50, correlation=2)
    result = found(file, tmp_path)
    assert (only(result).op, result.covered_share) == ("aten::addmm", 0.5)
    assert any(n.en.startswith("50.0% of kernel time") for n in result.notes)


def test_only_kernels_of_the_window_count(tmp_path: Path) -> None:
    file = TraceFile(gpu=H100)
    for i in range(4):
        product(file, 1000 * i, 512, 512, 512, 60, i + 1)
    part = found(file, tmp_path, Window("iterations", 1_000_000, 3_000_000, 2, "ProfilerStep"))
    assert only(part).count == 2
    assert part.gemm_tflops == pytest.approx(2 * 2 * 512**3 / 2e-3 / 1e12)


@given(
    st.lists(
        st.tuples(st.sampled_from([8, 64, 1024, 8192]), st.integers(1, 3000), st.booleans()), min_size=1, max_size=12
    )
)
def test_shares_of_the_kernel_time_never_exceed_it(calls: list[tuple[int, int, bool]]) -> None:
    file = TraceFile(gpu=H100)
    for i, (rows, us, moves) in enumerate(calls):
        product(file, 5000 * i, rows, 4096, 4096, us, i + 1, ELEMENTWISE if moves else GEMM)
    with TemporaryDirectory() as folder:
        result = found(file, Path(folder))
    shares = (result.memory_bound_share, result.compute_bound_share, result.far_below_share)
    assert all(s is None or 0 <= s <= 1 for s in shares)
    assert sum(s or 0 for s in shares) <= 1 + 1e-9
    assert sum(w.gpu_ns for w in result.work) == sum(us for _, us, _ in calls) * 1000
    assert all(w.of_peak is None or w.of_peak <= 1.05 for w in result.work)


def test_mfu_is_palms_and_only_for_given_numbers(tmp_path: Path) -> None:
    file = product(TraceFile(gpu=H100), 0, 512, 512, 512, 60, 1)
    assert found(file, tmp_path).mfu is None
    assert found(file, tmp_path, parameters=7e9).mfu is None
    plain = found(file, tmp_path, parameters=7e9, tokens_per_second=10_000)
    assert plain.mfu == pytest.approx(10_000 * 6 * 7e9 / 989.4e12)
    full = found(file, tmp_path, parameters=7e9, tokens_per_second=10_000, layers=32, hidden=4096, sequence=2048)
    assert full.mfu == pytest.approx(10_000 * (6 * 7e9 + 12 * 32 * 4096 * 2048) / 989.4e12)
    steps = Window("iterations", 0, 2_000_000_000, 4, "ProfilerStep")
    assert found(file, tmp_path, steps, parameters=7e9, tokens=5_000).mfu == pytest.approx(plain.mfu or 0)
    assert found(file, tmp_path, parameters=7e9, tokens_per_second=10_000, training=False).mfu == pytest.approx(
        (plain.mfu or 0) / 3
    )
    impossible = found(file, tmp_path, parameters=7e12, tokens_per_second=10_000)
    assert impossible.mfu is None
    assert any("impossible" in n.en for n in impossible.notes)
