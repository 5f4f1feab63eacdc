"""Kernels by their names. The names are of the shapes that the libraries named beside them give."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probes.trace.names.classify import (
    KernelClass,
    TensorCore,
    is_communication,
    kernel_class,
    moves_only_bytes,
    tensor_core,
)
from probes.trace.names.kernel_names import stem
from tests.cases import each

COMMUNICATION = [
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
    "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
    "ncclAllReduceRingLLKernel_sum_f32(ncclColl)",
    "ncclSymkDevKernel_AllGather_LLMC(ncclSymkDevWorkArgs)",
    "rccl_main_kernel",
    "mscclKernel_Sum_half_Simple(ncclDevComm*, mscclAlgo*, mscclWork*)",
    "void mscclpp::allreduce8<__half>(__half*, int)",
    "void deep_ep::internode_ll::dispatch<true, 3, 10, 7168>(void*, float*)",
    "_ZN7deep_ep9intranode7combineI13__nv_bfloat16Li8ELi768EEEvPT_Pf",
    "nvshmemi_barrier_all_kernel(nvshmemi_team_t*)",
    "void multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long)",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)",
    "void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 8>(aiter::RankData*)",
    "void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<half>, half>(half const*)",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(flashinfer::Pattern)1, half>(int)",
    "void tensorrt_llm::kernels::ar_fusion::moe::moereduction_allreduce_fusion_kernel_oneshot_lamport<true>(int)",
    "void tensorrt_llm::kernels::twoShotAllReduceKernel<half, 8, true>(tensorrt_llm::kernels::AllReduceParams)",
    "void c10d::intra_node_comm::oneShotAllReduceKernel<8u, true>(c10::BFloat16*, unsigned long)",
    "two_shot_all_reduce_kernel_inplace",
    "void tensorrt_llm::kernels::moe_comm::moeA2ADispatchKernel<int>(int)",
    "allToAllV(void*, void*, long*, long*, long)",
    "barrier_kernel(unsigned int**, int, int, int, unsigned long)",
    "void exchangeSplitAndOffset<false>(long*, long*)",
    "void flashinfer::trtllm_mnnvl_allreduce::rmsNormLamport<half, 4>(half*)",
    "void pplx::a2a_dispatch_send_kernel<8>(int)",
    "all-reduce-start.3",
    "kuserbuffers_pushrecv(int, int, int, int, int*, int4*)",
]
NO_COMMUNICATION = [
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(at::native::ReduceOp<float>)",
    "void at::native::vectorized_elementwise_kernel<4, AllReduceOutputKernel, std::array<char*, 3ul> >(int, AllReduceOutputKernel)",
    "void my::fuse<ncclFloat32>(ncclDataType_t)",
    "small_gather_kernel",
    "triton_poi_fused_all_reduce_add_0",
    "void at::native::_scatter_gather_elementwise_kernel<128, 8>(int)",
    "void small_reduce_kernel<float>(float*)",
    "wall_to_alloy",
    "splitKreduce_kernel<32, 16, int, float>(float)",
    "segment_reduce_kernel",
]


@each("name", COMMUNICATION)
def test_communication_is_recognised(name: str) -> None:
    assert is_communication(name)
    assert kernel_class(name) is KernelClass.COMMUNICATION
    assert tensor_core(name) is TensorCore.NO


@each("name", NO_COMMUNICATION)
def test_what_only_bears_such_a_word_is_no_communication(name: str) -> None:
    assert not is_communication(name)


ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::{}, std::array<char*, 2ul> >(int)"
CLASSES = [
    ("void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, cutlass::half_t>>(Flash_fwd_params)", "attention", "yes"),
    ("void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2> > >(flash::Params)", "attention", "yes"),
    ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>::Params)", "attention", "yes"),
    ("kernel_unified_attention_2d", "attention", "unknown"),
    ("void vllm::paged_attention_v1_kernel<float, float, 64>(float*)", "attention", "no"),
    ("void cutlass::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_128x128_32x4_nhwc_align4>(int)", "convolution", "yes"),
    ("void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false, true, true>(int)", "convolution", "no"),
    ("igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x64x32_wt32x32x8", "convolution", "yes"),
    ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x128x32_stage5", "convolution", "yes"),
    ("volta_sgemm_128x64_nn", "gemm", "no"),
    ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn", "gemm", "yes"),
    ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn", "gemm", "yes"),
    ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(int)", "gemm", "no"),
    ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4", "gemm", "no"),
    ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT", "gemm", "yes"),
    ("Cijk_Alik_Bljk_BBS_BH_Bias_MT256x192x64_MI16x16x1_SN", "gemm", "yes"),
    ("Cijk_Ailk_Bljk_SB_MT64x64x8_SE_K1_TT4_4_VW4", "gemm", "no"),
    ("void gemv2T_kernel_val<int, int, float, float>(float)", "gemm", "no"),
    ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float>(int)", "gemm", "no"),
    ("bmm_E4m3_E4m3E4m3_Fp32_t128x8x128_s6_et64x8_m64x8x32_tmaSf_rM_BN_transOut_schPd2x1x2x3_sm100f", "gemm", "yes"),
    ("void deep_gemm::fp8_gemm_kernel<7168u, 2048u, 128u>(float*)", "gemm", "yes"),
    ("fused_moe_kernel", "gemm", "unknown"),
    ("_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1", "gemm", "unknown"),
    (ELEMENTWISE.format("CUDAFunctor_add<float>"), "elementwise", "no"),
    (ELEMENTWISE.format("FillFunctor<float>"), "copy", "no"),
    (ELEMENTWISE.format("bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)"), "copy", "no"),
    ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*)", "copy", "no"),
    ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)", "norm", "no"),
    ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb1EEEvPT0_", "norm", "no"),
    ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>(float*)", "softmax", "no"),
    ("void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, true>(int)", "index", "no"),
    ("void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int> >(int*)", "index", "no"),
    ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>, FusedAdamMathFunctor<float> >()", "optimizer", "no"),
    ("split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1<float>(float)", "embedding", "no"),
    ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", "elementwise", "no"),
    ("void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int)", "index", "no"),
    ("void vllm::moe::topkGatingSoftmax<8, 64, 4, 16>(float const*)", "moe", "unknown"),
    ("void vllm::moe::moe_align_block_size_kernel<int>(int*)", "moe", "unknown"),
    ("void vllm::dynamic_scaled_fp8_quant_kernel<c10::BFloat16>(float*)", "quantise", "no"),
    ("void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4>(long)", "random", "no"),
    ("void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float> >(float)", "reduction", "no"),
    ("triton_poi_fused_mul_silu_2", "elementwise", "unknown"),
    ("triton_red_fused_add_mean_mul_pow_rsqrt_0", "norm", "unknown"),
    ("triton_per_fused__softmax_1", "softmax", "unknown"),
    ("triton_tem_fused_mm_4", "gemm", "unknown"),
    ("Custom_Cijk_Alik_Bljk_BBS_BH_MT256x256x64_MI16x16x1_SN", "gemm", "yes"),
    ("void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<1u> >(flashinfer::Params)", "attention", "yes"),
    ("void flashinfer::BatchDecodeWithPagedKVCacheKernel<2u, 8u>(flashinfer::Params)", "attention", "no"),
    ("void flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<64> >(Flash_fwd_params)", "attention", "no"),
    ("fmhaSm100fKernel_QkvE4m3OBfloat16H128PagedKvCausalP32VarSeqQ128Kv128PersistentContext", "attention", "yes"),
    ("void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 7168u, 2048u>(float*)", "gemm", "yes"),
    ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>, Sm90> >(Params)", "gemm", "yes"),
    ("void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<128, 16> >(SSMParamsBase)", "rnn", "unknown"),
    ("loop_multiply_fusion_3", "elementwise", "unknown"),
    ("input_reduce_fusion", "reduction", "unknown"),
    ("vectorized_nothing_known", "other", "unknown"),
]  # fmt: skip


@each(("name", "kind", "cores"), CLASSES)
def test_classes_and_tensor_cores(name: str, kind: str, cores: str) -> None:
    assert (str(kernel_class(name)), str(tensor_core(name))) == (kind, cores)


def test_what_only_moves_bytes() -> None:
    assert moves_only_bytes(ELEMENTWISE.format("CUDAFunctor_add<float>"))
    assert not moves_only_bytes("volta_sgemm_128x64_nn")
    assert not moves_only_bytes("ncclDevKernel_Generic(int)")
    assert not moves_only_bytes("vectorized_nothing_known")


@each(
    ("name", "own"),
    [
        ("void at::native::(anonymous namespace)::f<a<b>, c>(int)", "at::native::f"),
        ("_ZN7deep_ep9intranode7combineI13__nv_bfloat16Li8EEEvPT_", "deep_ep::intranode::combine"),
        (
            "_ZN2ck16tensor_operation6device12_GLOBAL__N_114kernel_grouped",
            "ck::tensor_operation::device::kernel_grouped",
        ),
        ("_Z14batch_gather_1Pf", "batch_gather_1"),
        ("_ZNK3foo3barEv", "foo::bar"),
        ("_Zbroken", "_Zbroken"),
        ("volta_sgemm_128x64_nn", "volta_sgemm_128x64_nn"),
        ("<unusual", "<unusual"),
        ("", ""),
    ],
)
def test_the_kernels_own_name(name: str, own: str) -> None:
    assert stem(name) == own


@given(st.one_of(st.text(), st.from_regex(r"_ZN?K?(\d{1,9}[a-z]{0,9}){0,5}[IE]?", fullmatch=True)))
def test_any_name_has_a_class(name: str) -> None:
    assert kernel_class(name) in KernelClass
    assert tensor_core(name) in TensorCore
    assert is_communication(name) == (kernel_class(name) is KernelClass.COMMUNICATION)


def test_a_name_of_megabytes_is_cut() -> None:
    assert kernel_class("void nccl<" * 300_000) is KernelClass.COMMUNICATION
    assert kernel_class("x" * 5_000_000) is KernelClass.OTHER
