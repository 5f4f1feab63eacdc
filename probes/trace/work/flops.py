"""Floating-point operations and least bytes of an operator, from what the profiler recorded of its inputs.

A multiplication with its addition counts as two operations. Least bytes: each operand read once and the result
written once, as if the cache were perfect; what really moved can only be more. Of an operator whose shapes do
not settle the number (lengths in a device tensor, no stride recorded) there is no cost, never a guessed one.

Argument positions are those of the operators' schemas (pytorch, ``native_functions.yaml``; ``flash_attn``,
``flash_attn_interface.py``; vllm, ``_custom_ops.py``).
"""

from __future__ import annotations

from math import prod
from typing import Final

from probes.trace.work.calls import Call, Cost, Dims, Doubt, Kind, parse


def cost(name: str, call: Call) -> Cost | None:
    """The work of one call of operator `name`; None when it is not known or its shapes do not settle it."""
    found = _formula(name, call)
    return found if found is not None and max(found.flop, found.bytes) < _IMPOSSIBLE else None


def _formula(name: str, call: Call) -> Cost | None:
    if name in _PRODUCTS:
        return _product(name, call)
    if name in _CONVOLUTIONS:
        return _convolution(name, call)
    if name in _GRADIENTS:
        return _gradients(name, call)
    return _attention(name, call) if name in _ATTENTION else None


def known(name: str) -> bool:
    """Whether operators of this name are products, convolutions or attention; `cost` may still not tell how much."""
    return name in _KNOWN


_IMPOSSIBLE: Final = 1 << 70  # of one call: hours of the fastest machine there is

# operator -> places of the two factors
_PRODUCTS: Final = {
    "aten::mm": (0, 1), "aten::bmm": (0, 1), "aten::matmul": (0, 1), "aten::linear": (0, 1), "aten::addmm": (1, 2),
    "aten::addmm_": (1, 2), "aten::_addmm_activation": (1, 2), "aten::baddbmm": (1, 2), "aten::baddbmm_": (1, 2),
    "aten::mv": (0, 1), "aten::addmv": (1, 2), "aten::addmv_": (1, 2), "aten::dot": (0, 1), "aten::_scaled_mm": (0, 1),
    "aten::_int_mm": (0, 1), "aten::_grouped_mm": (0, 1), "aten::_scaled_grouped_mm": (0, 1),
    "_C::cutlass_scaled_mm": (1, 2), "vllm::rocm_unquantized_gemm": (0, 1),
}  # fmt: skip
_TRANSPOSED: Final = frozenset({"aten::linear", "vllm::rocm_unquantized_gemm"})  # weight as [out, in]
_GROUPED: Final = frozenset({"aten::_grouped_mm", "aten::_scaled_grouped_mm"})
_RESULT_BYTES: Final = {
    "aten::_scaled_mm": 2,
    "aten::_scaled_grouped_mm": 2,
    "_C::cutlass_scaled_mm": 2,
    "aten::_int_mm": 4,
}
_ONE_WAY: Final = frozenset({"aten::linear", "aten::addmm", "aten::_addmm_activation", "aten::_scaled_mm", "aten::_int_mm",
                             "_C::cutlass_scaled_mm", "vllm::rocm_unquantized_gemm"})  # fmt: skip


def _product(name: str, call: Call) -> Cost | None:
    first, second = _PRODUCTS[name]
    a, b = call.shape(first), call.shape(second)
    left, right = call.format(first), call.format(second)
    if a is None or b is None or left is None or right is None:
        return None
    sizes = _sizes(a, b, name)
    if sizes is None:
        return None
    count, m, k, n = sizes
    result = count * m * n * _RESULT_BYTES.get(name, left[1])
    weights = prod(b) * right[1]
    moved = prod(a) * left[1] + weights + result
    ways: tuple[tuple[int, int], ...] = ()
    if len(b) == 2 and count == 1:
        bias = call.shape(0) if first == 1 and name.startswith("aten::") else None
        if name in _ONE_WAY and (bias is None or len(bias) == 1):
            ways = ((m, weights),)
        elif name in ("aten::mm", "aten::matmul"):
            ways = ((m, weights), (k, result))
    return Cost(Kind.GEMM, 2 * count * m * k * n, moved, left[0], ways)


def _sizes(a: Dims, b: Dims, name: str) -> tuple[int, int, int, int] | None:
    """How many products of [m, k] with [k, n]; None where the inner sizes differ."""
    if name in _TRANSPOSED and len(b) >= 2:
        b = (*b[:-2], b[-1], b[-2])
    if name in _GROUPED:  # rows of `a` are shared out among the groups
        return (1, a[0], a[1], b[2]) if len(a) == 2 and len(b) == 3 and a[1] == b[1] else None
    if len(a) == 1:
        a = (1, *a)
    if len(b) == 1:
        b = (*b, 1)
    if a[-1] != b[-2]:
        return None
    if len(b) == 2:
        return 1, prod(a[:-1]), a[-1], b[-1]
    count = max(prod(a[:-2]), prod(b[:-2]))
    return count, a[-2], a[-1], b[-1]


# operator -> places of stride, padding, dilation, and of transposed (with output padding and groups behind it)
_CONVOLUTIONS: Final = {
    "aten::convolution": (3, 4, 5, 6), "aten::_convolution": (3, 4, 5, 6), "aten::convolution_overrideable": (3, 4, 5, 6),
    "aten::conv1d": (3, 4, 5, -1), "aten::conv2d": (3, 4, 5, -1), "aten::conv3d": (3, 4, 5, -1),
    "aten::cudnn_convolution": (3, 2, 4, -1), "aten::miopen_convolution": (4, 3, 5, -1),
    "aten::miopen_depthwise_convolution": (4, 3, 5, -1), "aten::cudnn_convolution_relu": (3, 4, 5, -1),
    "aten::cudnn_convolution_add_relu": (5, 6, 7, -1), "aten::_conv_depthwise2d": (4, 5, 6, -1),
    "aten::conv_depthwise3d": (4, 5, 6, -1),
}  # fmt: skip
# operator -> places of the result's gradient, input, weight, transposed, and of the mask of wanted gradients
_GRADIENTS: Final = {
    "aten::convolution_backward": (0, 1, 2, 7, 10),
    "aten::cudnn_convolution_backward": (1, 0, 2, -1, 10),
}


def gradient_of(name: str, call: Call) -> tuple[tuple[Dims, Dims], Dims] | None:
    """Of a convolution's gradient: the shapes of input and weight, and that of the result they had in the forward pass."""
    if name not in _GRADIENTS:
        return None
    result, data, weight = (call.shape(at) for at in _GRADIENTS[name][:3])
    return ((data, weight), result) if data and weight and result and len(data) == len(weight) == len(result) else None


def _convolution(name: str, call: Call) -> Cost | None:
    data, weight, form = call.shape(0), call.shape(1), call.format(0)
    if data is None or weight is None or form is None or len(data) != len(weight) or len(data) < 3:
        return None
    result = _result(name, call, data, weight) or call.result
    if result is None:
        return None
    transposed = _CONVOLUTIONS[name][3] >= 0 and call.flag(_CONVOLUTIONS[name][3]) is True
    flop = 2 * (prod(data) if transposed else prod(result)) * prod(weight) // max(weight[0], 1)
    weights = prod(weight) * form[1]
    moved = (prod(data) + prod(result)) * form[1] + weights
    return Cost(Kind.CONVOLUTION, flop, moved, form[0], ((data[0], weights),))


def _result(name: str, call: Call, data: Dims, weight: Dims) -> Dims | None:
    """The shape of a convolution's result (torch.nn.Conv2d, ConvTranspose2d: the formulas under Shape)."""
    at_stride, at_padding, at_dilation, at_transposed = _CONVOLUTIONS[name]
    rank = len(data) - 2
    lists = [call.numbers(i) for i in (at_stride, at_padding, at_dilation)]
    stride, padding, dilation = (x * rank if x is not None and len(x) == 1 else x for x in lists)
    if stride is None or padding is None or dilation is None or {len(stride), len(padding), len(dilation)} != {rank}:
        return None
    if min(stride) < 1:
        return None
    reach = [d * (w - 1) for d, w in zip(dilation, weight[2:], strict=True)]
    sides = zip(data[2:], stride, padding, reach, strict=True)
    if at_transposed >= 0 and call.flag(at_transposed) is not False:
        extra, groups = call.numbers(at_transposed + 1), call.text(at_transposed + 2)
        if call.flag(at_transposed) is None or extra is None or len(extra) != rank or not groups.isdigit():
            return None
        sizes = [(x - 1) * s - 2 * p + r + e + 1 for (x, s, p, r), e in zip(sides, extra, strict=True)]
        return (data[0], weight[1] * int(groups), *sizes) if min(sizes) > 0 else None
    sizes = [(x + 2 * p - r - 1) // s + 1 for x, s, p, r in sides]
    return (data[0], weight[0], *sizes) if min(sizes) > 0 else None


def _gradients(name: str, call: Call) -> Cost | None:
    at_result, at_data, at_weight, at_transposed, at_mask = _GRADIENTS[name]
    result, data, weight = call.shape(at_result), call.shape(at_data), call.shape(at_weight)
    form = call.format(at_data)
    if result is None or data is None or weight is None or form is None or len(weight) < 3:
        return None
    masks = (parse(call.text(at).replace("True", "1").replace("False", "0")) for at in (at_mask, at_mask - 1))
    mask = next((m for m in masks if m), None)
    products = sum(bool(x) for x in mask[:2]) if mask else 2
    transposed = at_transposed >= 0 and call.flag(at_transposed) is True
    flop = 2 * (prod(data) if transposed else prod(result)) * prod(weight) // max(weight[0], 1) * products
    weights = prod(weight) * form[1] * products
    moved = (prod(data) + prod(result)) * form[1] * products + weights
    return Cost(Kind.CONVOLUTION, flop, moved, form[0], ((data[0], weights),), Doubt.NONE if mask else Doubt.MASK)


# operator -> (place of the query, heads before positions?, place of causal, gradient?, place of cumulated lengths or -1)
_ATTENTION: Final = {
    "aten::scaled_dot_product_attention": (0, True, 5, False, -1),
    "aten::_scaled_dot_product_flash_attention": (0, True, 4, False, -1),
    "aten::_scaled_dot_product_efficient_attention": (0, True, 6, False, -1),
    "aten::_scaled_dot_product_cudnn_attention": (0, True, 6, False, -1),
    "aten::_scaled_dot_product_flash_attention_backward": (1, True, 11, True, -1),
    "aten::_scaled_dot_product_efficient_attention_backward": (1, True, 11, True, -1),
    "aten::_scaled_dot_product_cudnn_attention_backward": (1, True, 14, True, -1),
    "aten::_flash_attention_forward": (0, False, 8, False, 3),
    "aten::_efficient_attention_forward": (0, False, 9, False, -1),
    "aten::_flash_attention_backward": (1, False, 11, True, 6),
    "aten::_efficient_attention_backward": (1, False, 14, True, -1),
    "flash_attn::_flash_attn_forward": (0, False, 5, False, -1),
    "flash_attn::_flash_attn_backward": (1, False, 11, True, -1),
    "flash_attn::_flash_attn_varlen_forward": (0, False, 9, False, 3),
    "aiter::_flash_attn_forward": (0, False, 5, False, -1),
    "FlashAttnFunc": (0, False, 5, False, -1),
}  # fmt: skip
# Attention over sequences whose lengths stand in device memory: its time is known, its work is not.
_OPAQUE: Final = frozenset({"vllm::unified_attention", "vllm::unified_attention_with_output", "vllm::unified_mla_attention",
                            "vllm::unified_mla_attention_with_output", "_vllm_fa2_C::varlen_fwd", "_vllm_fa3_C::fwd",
                            "sglang::unified_attention_with_output", "flash_attn::_flash_attn_varlen_backward",
                            "flash_attn_3::fwd", "aiter::_flash_attn_varlen_forward"})  # fmt: skip
_KNOWN: Final = frozenset({*_PRODUCTS, *_CONVOLUTIONS, *_GRADIENTS, *_ATTENTION, *_OPAQUE})


def _attention(name: str, call: Call) -> Cost | None:
    """2 FLOP for each query, key and feature, twice (QK, PV); the gradient has five such products (FlashAttention-2, 4.1)."""
    at, heads_first, at_causal, gradient, at_lengths = _ATTENTION[name]
    q, k, v, form = call.shape(at), call.shape(at + 1), call.shape(at + 2), call.format(at)
    if q is None or k is None or v is None or form is None:
        return None
    if len(q) == len(k) == len(v) == 3 and at_lengths >= 0:
        q, k, v = (_even(call, at_lengths, i > 0, x) for i, x in enumerate((q, k, v)))
    if q is None or k is None or v is None or not len(q) == len(k) == len(v) == 4:
        return None
    heads, positions = (1, 2) if heads_first else (2, 1)
    causal = call.flag(at_causal)
    pairs = _pairs(q[positions], k[positions], causal is True)
    flop = 2 * q[0] * q[heads] * pairs * (q[3] + v[3])
    out = prod(q[:3]) * v[3]
    moved = (prod(q) + prod(k) + prod(v) + out) * form[1]
    if gradient:
        flop, moved = flop * 5 // 2, moved * 2
    doubt = Doubt.CAUSAL if causal is None and q[positions] > 1 else Doubt.NONE
    return Cost(Kind.ATTENTION, flop, moved, form[0], (), doubt)


def _pairs(queries: int, keys: int, causal: bool) -> int:
    """How many keys all queries of a head look at; causal: aligned at the last of both."""
    if not causal:
        return queries * keys
    seen = min(queries, keys)
    return seen * (seen + 1) // 2 + max(keys - queries, 0) * queries


def _even(call: Call, at_lengths: int, key: bool, packed: Dims) -> Dims | None:
    """Packed sequences [total, heads, size] as [count, length, heads, size], when all have the greatest length."""
    cumulated, longest = call.shape(at_lengths + key), call.text(at_lengths + 2 + key)
    if cumulated is None or len(cumulated) != 1 or not longest.isdigit():
        return None
    count, length = cumulated[0] - 1, int(longest)
    return (count, length, *packed[1:]) if count * length == packed[0] else None
