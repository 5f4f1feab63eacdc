"""What a kernel is, from its name: communication, matrix product, attention, copy, ... and whether it uses tensor cores.

Only names stand in a trace, so each class is a list of patterns with their source; tensor-core use is yes, no
or unknown, and only a hardware counter proves it. Patterns are tried on the kernel's own name (`kernel_names.stem`):
what stands in its template arguments, someone's ``AllReduceOutput`` functor, is not what the kernel does.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import cache, lru_cache
from typing import Final

import re2

from probes.trace.names.kernel_names import LONGEST, bare, stem, telling


class KernelClass(StrEnum):
    """What a kernel does. Of several that fit, the first counts."""

    COMMUNICATION = "communication"
    ATTENTION = "attention"
    CONVOLUTION = "convolution"
    GEMM = "gemm"
    NORM = "norm"
    SOFTMAX = "softmax"
    EMBEDDING = "embedding"
    OPTIMIZER = "optimizer"
    MOE = "moe"  # routing, permuting and gathering of experts' tokens; their products are GEMMs
    QUANTISE = "quantise"
    RNN = "rnn"
    RANDOM = "random"  # dropout, sampling, initialisation
    INDEX = "index"  # sort, scan, top-k, gather, scatter
    REDUCTION = "reduction"  # and pooling
    COPY = "copy"  # fill, transpose, concatenate, cast
    ELEMENTWISE = "elementwise"
    OTHER = "other"


class TensorCore(StrEnum):
    """Whether a kernel computes on tensor cores (AMD: matrix cores), as far as a name tells."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


_COMMUNICATION: Final = "|".join((
    r"nccl",  # ncclDevKernel_AllReduce_Sum_bf16_RING_LL, ncclKernel_..., ncclAllReduceRingLLKernel_sum_f32, ncclSymkDevKernel_...
    r"rccl|msccl",  # rccl_main_kernel; mscclKernel_..., mscclpp::...
    r"deep_?ep(?:::|_)|hybrid_ep|uccl",  # void deep_ep::internode_ll::dispatch<...>
    r"nvshmem|rocshmem|roc_shmem",  # nvshmemi_proxy..., nvshmem_barrier_kernel
    r"multimem_|symm(?:etric)?_?mem",  # torch: CUDASymmetricMemoryOps.cu, multimem_one_shot_all_reduce_kernel
    r"cross_device_(?:reduce|store|load)",  # vLLM, SGLang, AITER: custom_all_reduce.cuh
    r"(?:^|[_:])custom_?ar(?:[_:]|$)|(?:^|[_:])ar_fusion",  # TensorRT-LLM: allReduceFusionKernels.cu
    r"(?:^|[_:])all[-_]*reduce|(?:^|[_:])all[-_]*gather|(?:^|[_:])all[-_]*(?:to|2)[-_]*all|(?:^|[_:])a2a_|moe_?a2_?a|moe_?comm",
    r"(?:^|[_:])reduce[-_]*scatter",  # one_shot_..., two_shot_..., quickreduce::allreduce_prototype_twoshot (with the line above)
    r"(?:^|[_:])quick_?reduce|hybrid_cube_mesh",  # vLLM on ROCm; torch: intra_node_comm.cu
    r"user_?buffers",  # Transformer Engine: userbuffers.cu
    r"exchange_split_and_offset|(?:put|wait)_signal_kernel|(?:^|::)barrier_kernel$",  # torch: nvshmem_extension.cu, CUDASymmetricMemory.cu
    r"mori::.*(?:dispatch|combine)|push_pull_halos",  # AMD MORI-EP; apex: peer_memory
    r"one_?shot_reduce_kernel|two_?shot_reduce_kernel",
))  # fmt: skip
_SOME_COMMUNICATION: Final = (
    r"(?i)[nr]ccl|msccl|deep_?ep|shmem|multimem|symm|cross_device|custom_?ar|ar_fusion|all[-_]*(?:reduce|gather|to|2)|a2_?a"
    r"|uccl|hybrid_ep|barrier_kernel|reduce[-_]*scatter|quick_?reduce|cubemesh|user_?buffers|exchangesplit|_signal_kernel|mori::|halos|shot_?reduce|moe_?comm"
)
# Inductor names its kernels after what was fused: triton_poi_fused_all_reduce_add_0 only prepares one.
_INDUCTOR: Final = r"^triton_(poi|red|per|for|tem|mix|spl)_fused"

# In order: the first class with a fitting pattern. On the stem (of wrappers: with their template arguments), any case.
_CLASSES: Final = (
    # FillFunctor and direct copies are copies; MulFunctor and the like are element by element (ATen/native/cuda).
    (KernelClass.COPY, r"elementwise_kernel.*(?:FillFunctor|direct_copy_kernel|copy_kernel_cuda|CopyFunctor)|multi_tensor_apply_kernel.*CopyFunctor"),
    (KernelClass.RANDOM, r"distribution_|dropout|philox|curand|bernoulli|multinomial|sampling|(?:^|[_:])rand(?:om|perm|n|int|_)"),
    (KernelClass.OPTIMIZER, r"multi_?tensor_apply|(?:^|[_:])(?:fused_?)?(?:adam|sgd|lamb|lion|adafactor)w?(?:_|$)"),
    (KernelClass.INDEX, r"index_elementwise_kernel|index_kernel|rocprim.*(?:radix|sort|scan|partition|select|unique)"),
    # The functor of an elementwise kernel may be called anything: gelu_..., softmax_..., sum_...
    (KernelClass.ELEMENTWISE, r"elementwise_kernel|rotary|(?:^|[_:])rope(?:[_:]|$)"),
    (KernelClass.REDUCTION, r"^at::native::reduce_kernel|^cub::.*reduce|^reduce_1Block_kernel|(?:^|::)reduce_kernel$"),
    # FlashAttention, CK and FlashInfer, xFormers, TensorRT-LLM, cuDNN SDPA, vLLM and SGLang (Triton), AITER
    (KernelClass.ATTENTION, r"flash_?(?:attn|attention|fwd|bwd|mla|decod|prefill)|(?:^|[_:])flash::|fmha|attention|(?:^|[_:])mha_|(?:^|[_:])pa_(?:fwd|bf16|fp16|decode|prefill|\w*ps_)"
                            r"|(?:^|[_:])attn_|_attn_|_attn$|(?:^|[_:])mla_|flash_?mla|sdpa|Batch(?:Prefill|Decode)With|Single(?:Prefill|Decode)With|flex_attention"
                            r"|(?:^|[_:])_fwd_(?:grouped_)?kernel(?:_stage\d)?$|(?:^|[_:])_bwd_(?:kernel|preprocess)|merge_(?:attn_)?states?|qk_int8_sv|VariableLengthMergeStates|splitkv|_attn_fwd"),
    # cuDNN, MIOpen, CUTLASS conv, composable kernel
    (KernelClass.COPY, r"nchwToNhwc|nhwcToNchw|batched_transpose|transpose_[A-Z]{4}2[A-Z]{4}|computeOffsetsKernel"),
    (KernelClass.NORM, r"bn_(?:fw|bw)|MIOpenBatchNorm|batch_?norm"),
    (KernelClass.CONVOLUTION, r"convolv|convolution|conv[123]d|(?:^|[_:])conv_|_conv_|conv::|MIOpenConv|AsmConv|scudnn|[hs]\d+cudnn|winograd|[dw]grad|fprop|igemm_(?:fwd|bwd|wrw)|depthwise|im2col|col2im|naive_conv|bwd_weight|gridwise_conv"),
    # cuBLAS, cuBLASLt, CUTLASS, hipBLASLt and Tensile (Cijk), CK, DeepGEMM, Triton, Marlin, Machete, ROCm skinny GEMM
    (KernelClass.GEMM, r"(?:^|[^b])gemm|nvjet|^Cijk_|(?:^|_)Cijk_|matmul|gemv|splitK_?reduce|(?:^|[_:])dot_kernel|(?:^|[_:])bmm_|_[bm]mm?_|addmm|marlin|machete|wvSplitK|LLMM|flatmm|fused_moe_kernel|fmoe|cutlass_\d+_(?:tensorop|simt|wmma)|epilogue::impl::globalKernel|scal_kernel|trsm|exl2|mul_mat|gptq|awq_"),
    (KernelClass.NORM, r"norm(?:[^a]|$)|(?:^|[_:])ln_(?:fwd|bwd|parallel)|normaliz|GammaBeta|RowwiseMoments|welford|Rmsnorm"),
    (KernelClass.MOE, r"moe|expert|topk_?gating|grouped_topk|routing|bitmatrix|_combined_routing|finalize_?scatter"),
    (KernelClass.SOFTMAX, r"soft_?max|cross_?entropy|nll_?loss|ClassNLL"),
    (KernelClass.EMBEDDING, r"embedding|_embs?_|EmbeddingBag|compute_grad_weight|bounds_check_indices|lookup"),
    (KernelClass.OPTIMIZER, r"adagrad|foreach"),
    (KernelClass.QUANTISE, r"quant|scaled_fp8|fp8_cast|_to_fp8|mxfp|nvfp4"),
    (KernelClass.RNN, r"selective_scan|chunk_scan|chunk_state|state_passing|lstm|(?:^|[_:])gru|_gru_|rnn|GRUCell"),
    (KernelClass.COPY, r"reshape_and_cache|CatArray|chunk_cat|split_with_sizes|copyBuffer|fillBuffer|memcpy|memset|(?:^|[_:])copy|_copy|transpose|permute_[a-z]|concat|(?:^|[_:])pad|fill|convert|cast|roll_|flip|tri[lu]|unpack|kv_?cache|store_kv|set_kv"),
    (KernelClass.INDEX, r"sort|top_?k|radix|scan|unique|index|indices|indexing|gather|scatter|nonzero|select|searchsorted|bincount|histogram|cumsum|cumprod|compact|partition|masked_|offsets|permute_[12]D|expand_|lengths|_ids|position|token|take_"),
    (KernelClass.REDUCTION, r"reduce|reduction|(?:^|[_:])sum|_sum|mean|pool|argmax|argmin|segment_"),
    (KernelClass.ELEMENTWISE, r"elementwise|^loop_|^wrapped_|pointwise|activation|act_and_mul|silu|gelu|relu|swiglu|rotary|rope|sigmoid|tanh|where|clamp|OpTensor|scalePacked|TensorOp|op_generic|op_tensor|arange|threshold|bias|upsample|interpolate|grid_sampl|add_kernel|mul_kernel"),
)  # fmt: skip

_REDUCTIONS: Final = (  # of Inductor's reductions, by what was fused
    (KernelClass.SOFTMAX, "softmax"), (KernelClass.NORM, "norm"), (KernelClass.NORM, "rsqrt"),
)  # fmt: skip

# PyProf's and the TensorBoard plugin's allow-list (tb_plugin, tensor_core.py), and what it misses on later devices.
_TENSOR_CORE: Final = "|".join((
    r"[hsicd]?(?:884|1688|8816|16816|16832|16864)(?:gemm|cudnn|fprop|dgrad|wgrad|_|$)|[hsid](?:884|1688|16816)|hmma|imma|qmma|bmma|c1688",
    r"dgrad_1x1_stride_2x2|first_layer_wgrad_kernel|conv1x1|conv2d_c1_k1|direct_group",
    r"xmma_(?:sparse_|warp_specialized_)?(?:gemm|conv|implicit_gemm|fprop|dgrad|wgrad)",
    r"nvjet|gmma|tensorop|warp_?speciali[sz]ed|tcgen05|umma|wgmma|_wmma|tensor\d+x\d+x\d+",  # cuBLAS 12, CUTLASS 3, Hopper, Blackwell
    r"(?:^|[_:])sm(?:90|100|103|120)a?_.*(?:gemm|conv|bmm|mma)|Sm(?:90|100|103|120).*(?:Gemm|Mma|Collective)",
    r"flash_?(?:fwd|bwd|attn|attention|mla)|FlashAttn|fmha|cudnn_generated_fort_native_sdpa|device_kernel<flash|PrefillWith|qk_int\w*_sv|sage_?attn",
    r"GemmKernel|GemmUniversal|deep_gemm|fp8_gemm|bmm_.*(?:E4m3|E2m1|Bfloat16|Fp16)|marlin|machete|cublasLt.*matmul",
    r"(?:^|_)Cijk_.*_MI\d+x\d+|mfma|xdl|igemm_\w+_gtcx|(?:^|::)fmoe|FmhaFwd|FmhaBwd|asm_gemm|bf16gemm|f4gemm",  # AMD: matrix instruction
))  # fmt: skip
# FP32 on CUDA cores, vectors, sums of parts; Maxwell and Pascal have no tensor cores; Tensile with thread tiles.
_NO_TENSOR_CORE: Final = "|".join((
    r"(?:^|_)[sd]?gemm_\d+x\d+|(?:volta|turing|ampere|maxwell|pascal)_(?:infer_|train_)?(?:s|d|h|c|z)gemm|plicit_convolve_[sh]gemm|_simt_|ffma|simt_",
    r"gemv|gemvNSP|splitK_?reduce|dot_kernel|gemmk1_|gemmSN|magma_s|scudnn|(?:dgrad|wgrad_alg\d)_engine|winograd_nonfused|winogradForward",
    r"^maxwell_|^pascal_|_f32_\w*_sm(?:50|60|70|75)|_f16_\w*_sm(?:50|60)\b|f32f32_f32f32_f32_.*ffma|(?:^|_)Cijk_.*_TT\d+_\d+|computeOffsets|epilogue::impl",
    r"flash_bwd_(?:dot|convert|clear)|splitkv_combine|FwdCombine|[Bb]wd_?(?:Pre|Post)process|merge_?(?:attn_)?states?|BatchDecodeWith|vllm::paged_attention_v\d",
    r"^batched_transpose_|^transpose_[A-Z]+2|^__amd_rocclr|^MIOpenBatchNorm|TensorOpWith",  # MIOpen, ROCm runtime
))  # fmt: skip

_BYTES: Final = frozenset({
    KernelClass.ELEMENTWISE, KernelClass.COPY, KernelClass.REDUCTION, KernelClass.NORM, KernelClass.SOFTMAX, KernelClass.EMBEDDING,
    KernelClass.OPTIMIZER, KernelClass.QUANTISE, KernelClass.INDEX,
})  # fmt: skip
_REMEMBERED: Final = 1 << 18  # names; a trace has hundreds
_NO: Final = 0  # place of the patterns that speak against tensor cores
_NO_PRODUCTS: Final = _BYTES | {KernelClass.COMMUNICATION, KernelClass.RANDOM}


@cache
def _pattern(text: str) -> re2._Regexp:
    return re2.compile(text)


def _automaton(patterns: Iterable[str]) -> re2.Set:
    """All patterns at once, in any case: `Match` gives the places of those that fit."""
    options = re2.Options()
    options.max_mem = 256 << 20
    found = re2.Set.SearchSet(options)
    for pattern in patterns:
        found.Add(f"(?i){pattern}")
    found.Compile()
    return found


@cache
def _classes() -> re2.Set:
    return _automaton(pattern for _, pattern in _CLASSES)


@cache
def _tensor_cores() -> re2.Set:
    return _automaton((_NO_TENSOR_CORE, _TENSOR_CORE))


@lru_cache(maxsize=_REMEMBERED)
def _looked_up(name: str) -> tuple[KernelClass, TensorCore]:
    own = stem(name)
    if inductor := _pattern(_INDUCTOR).search(own):
        return _inductor(inductor[1], own), TensorCore.UNKNOWN
    if _moves_between_ranks(name, own):
        return KernelClass.COMMUNICATION, TensorCore.NO
    text = telling(name, own)
    fitting = _classes().Match(text)
    kind = _CLASSES[min(fitting)][0] if fitting else KernelClass.OTHER
    return kind, _tensor_core(kind, text, plain=bare(name))


def _moves_between_ranks(name: str, own: str) -> bool:
    if _pattern(_SOME_COMMUNICATION).search(name[:LONGEST]) is None:  # most names are done here
        return False
    words = _pattern(r"([a-z0-9])([A-Z])").sub(r"\1_\2", own)  # oneShotAllReduceKernel: one_shot_all_reduce_kernel
    return _pattern(f"(?i){_COMMUNICATION}").search(words) is not None


def _inductor(kind: str, own: str) -> KernelClass:
    """torch.compile's kernels: pointwise, reduction, persistent reduction, template (torch/_inductor/codegen/triton.py)."""
    if kind == "tem":
        return KernelClass.ATTENTION if "attention" in own else KernelClass.GEMM
    if kind in ("red", "per"):
        return next((c for c, word in _REDUCTIONS if word in own), KernelClass.REDUCTION)
    return KernelClass.EMBEDDING if "embedding" in own else KernelClass.ELEMENTWISE


def _tensor_core(kind: KernelClass, text: str, *, plain: bool) -> TensorCore:
    if kind in _NO_PRODUCTS and not plain:
        return TensorCore.NO
    said = _tensor_cores().Match(text) or ()
    if _NO in said:
        return TensorCore.NO
    return TensorCore.YES if said and kind not in _NO_PRODUCTS else TensorCore.UNKNOWN


def is_communication(name: str) -> bool:
    """Whether a kernel of this name moves data between ranks."""
    return _looked_up(name)[0] is KernelClass.COMMUNICATION


def kernel_class(name: str) -> KernelClass:
    """What a kernel of this name does."""
    return _looked_up(name)[0]


def tensor_core(name: str) -> TensorCore:
    """Whether a kernel of this name computes on tensor cores. A Triton kernel's name does not tell: unknown."""
    return _looked_up(name)[1]


def moves_only_bytes(name: str) -> bool:
    """Whether a kernel of this name is bound by memory bandwidth by its nature: it computes little on each byte."""
    return _looked_up(name)[0] in _BYTES
