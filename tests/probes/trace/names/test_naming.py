"""Short names: real kernels' shapes, and any text at all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.text import clean
from probes.trace.names.naming import elide, frame_of, short
from tests.cases import each

ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
    "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
)
COPY = (
    "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda"
    "(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&) >(int)"
)
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true>(float*, float const*, int)"
CUTLASS = (
    "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x6_tn_align1>"
    "(cutlass_80_tensorop_s1688gemm_64x64_32x6_tn_align1::Params)"
)


@each(
    ("name", "expected"),
    [
        (ADD, "vectorized_elementwise_kernel<CUDAFunctor_add, ...>"),
        (COPY, "elementwise_kernel<direct_copy_kernel_cuda, ...>"),
        (SOFTMAX, "softmax_warp_forward<float, float, float, 10, true>"),
        (
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
            "at::native::sum_functor<float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int> >(int)",
            "reduce_kernel<sum_functor, ...>",
        ),
        ("void (anonymous namespace)::elementwise(float*)", "elementwise"),
        ("ncclDevKernel_AllReduce_Sum_f32(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_AllReduce_Sum_f32"),
        (CUTLASS, "cutlass::Kernel<cutlass_80_tensorop_s1688gem…32x6_tn_align1>"),
        ("triton_poi_fused_add_2", "triton_poi_fused_add_2"),
        ("aten::conv2d", "aten::conv2d"),
        ("nn.Module: Linear_0", "nn.Module: Linear_0"),
        ("/opt/venv/lib/train/loop.py(42): step", "train/loop.py(42): step"),
        ("train.py: <module>", "train.py: <module>"),
        ("<built-in method add of A<int> object>", "<built-in method add of A<int> object>"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"),
        ("_ZN2ck16tensor_operation6device12_GLOBAL__N_110grouped_ab", "ck::tensor_operation::device::grouped_ab"),
        ("bool f<int>::operator()(int) const", "f::operator<int>"),
        ("", "?"),
        ("\x1b[31m\x07", "?"),
    ],
)
def test_names(name: str, expected: str) -> None:
    assert short(name) == expected


def test_numbers_tell_variants_apart_as_far_as_there_is_room() -> None:
    name = "void wgrad_alg0_engine<float, 128, 6, 8, 3, 3, 5, false, 512>(int, int)"
    assert short(name) == "wgrad_alg0_engine<float, 128, 6, 8, 3, 3, 5, false, 512>"
    assert short(name, 40) == "wgrad_alg0_engine<float, 128, 6, 8, ...>"
    assert short(name, 22) == "wgrad_alg0_engine<...>"


def test_generated_names_keep_both_ends() -> None:
    name = "Cijk_Ailk_Bljk_BBS_BH_MT32x32x64_MI16x16x16x1_SN_1LDSB0_APM1_ABV0_ACED0_AF0EM1_AF1EM1_WG32_8_1_WGM16"
    found = short(name, 40)
    assert len(found) == 40
    head, tail = found.split("…")
    assert name.startswith(head)
    assert name.endswith(tail)


@given(st.text(max_size=300), st.integers(1, 80))
def test_any_text_becomes_one_line_that_fits(text: str, width: int) -> None:
    found = short(text, width)
    assert 1 <= len(found) <= width
    assert clean(found) == found
    assert len(found.splitlines()) == 1


@given(st.text(alphabet="<>(){}[]:, aλ&*~operator", max_size=200))
def test_unbalanced_brackets_do_no_harm(text: str) -> None:
    assert 1 <= len(short("void a::" + text)) <= 60


@given(st.text(max_size=50), st.integers(1, 60))
def test_eliding_keeps_what_fits(text: str, width: int) -> None:
    found = elide(text, width)
    assert found == text if len(text) <= width else len(found) == width


def test_a_python_frame_has_parts() -> None:
    frame = frame_of("a/b(1)/train.py(42): Model.<lambda>")
    assert frame is not None
    assert (frame.file, frame.line, frame.function) == ("a/b(1)/train.py", 42, "Model.<lambda>")
    assert frame_of("<built-in method mm of type object at 0x7f>") is None
    assert frame_of("aten::mm") is None


def test_a_name_of_a_megabyte_is_shortened_at_once() -> None:
    assert short("void f<" + "a<" * 500_000).startswith("f<")
