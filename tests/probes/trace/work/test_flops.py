"""Work of operators: the laws of the formulas, and what is no answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.trace.work.calls import Call, Doubt, parse, shown
from probes.trace.work.flops import cost

BF16 = "c10::BFloat16"
size = st.integers(1, 300)


def flop(name: str, dims: list[Any], concrete: list[str] | None = None, dtype: str = BF16) -> int:
    found = cost(name, Call(dims, [dtype] * len(dims), concrete or []))
    assert found is not None
    return found.flop


@given(size, size, size, st.integers(1, 7), st.integers(0, 2))
def test_a_product_is_linear_in_each_dimension(m: int, k: int, n: int, factor: int, which: int) -> None:
    grown = [m, k, n]
    grown[which] *= factor
    mm = [grown[0], grown[1]], [grown[1], grown[2]]
    assert flop("aten::mm", list(mm)) == factor * flop("aten::mm", [[m, k], [k, n]]) == factor * 2 * m * k * n


@given(size, size, size, st.integers(1, 9))
def test_many_products_at_once_are_that_many(m: int, k: int, n: int, count: int) -> None:
    assert flop("aten::bmm", [[count, m, k], [count, k, n]]) == count * flop("aten::mm", [[m, k], [k, n]])


@given(size, size, size)
def test_all_spellings_of_one_layer_are_the_same_work(tokens: int, inner: int, outer: int) -> None:
    spellings = [
        flop("aten::mm", [[tokens, inner], [inner, outer]]),
        flop("aten::addmm", [[outer], [tokens, inner], [inner, outer], [], []]),
        flop("aten::linear", [[1, tokens, inner], [outer, inner], [outer]]),
        flop("aten::matmul", [[1, 1, tokens, inner], [inner, outer]]),
        flop("aten::_scaled_mm", [[tokens, inner], [inner, outer]], dtype="c10::Float8_e4m3fn"),
    ]
    assert len(set(spellings)) == 1


@given(size, size, size)
def test_least_bytes_are_each_operand_once(m: int, k: int, n: int) -> None:
    found = cost("aten::mm", Call([[m, k], [k, n]], ["float", "float"], []))
    assert found is not None
    assert found.bytes == 4 * (m * k + k * n + m * n)
    assert found.batches == ((m, 4 * k * n), (k, 4 * m * n))


@given(st.integers(1, 4), st.integers(1, 8), st.integers(1, 64), st.integers(1, 64))
def test_a_convolution_of_one_by_one_is_a_product(batch: int, side: int, inner: int, outer: int) -> None:
    dims = [[batch, inner, side, side], [outer, inner, 1, 1], [], [], [], [], []]
    values = ["", "", "[0, 0]", "[1, 1]", "[1, 1]", "1"]
    assert flop("aten::cudnn_convolution", dims, values) == 2 * batch * side * side * inner * outer


def test_a_convolutions_result_follows_stride_padding_and_groups() -> None:
    dims = [[32, 3, 224, 224], [64, 3, 7, 7], [], [], [], [], [], [], []]
    values = ["", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1"]
    assert flop("aten::convolution", dims, values) == 2 * 32 * 64 * 112 * 112 * 3 * 7 * 7
    deep = [[8, 64, 56, 56], [64, 1, 3, 3], [], [], [], [], [], [], []]
    values = ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "64"]
    assert flop("aten::convolution", deep, values) == 2 * 8 * 64 * 56 * 56 * 9


def test_a_transposed_convolution_mirrors_its_forward() -> None:
    values = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "True", "[0, 0]", "1"]
    up = cost("aten::convolution", Call([[2, 16, 10, 10], [16, 8, 4, 4]], [BF16, BF16], values))
    assert up is not None
    assert up.flop == 2 * (2 * 16 * 10 * 10) * 8 * 16
    assert up.bytes == 2 * (2 * 16 * 100 + 2 * 8 * 20 * 20 + 16 * 8 * 16)


def test_gradients_are_two_products_unless_the_mask_says_less() -> None:
    dims = [[10, 64, 56, 56], [10, 64, 56, 56], [64, 64, 3, 3]] + [[]] * 8
    forward = 2 * 10 * 64 * 56 * 56 * 64 * 9
    both = ["", "", "", "[0]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "[True, True, False]"]
    assert flop("aten::convolution_backward", dims, both) == 2 * forward
    assert flop("aten::convolution_backward", dims, [*both[:-1], "[False, True, False]"]) == forward
    unsaid = cost("aten::convolution_backward", Call(dims, [BF16] * 3, []))
    assert unsaid is not None
    assert unsaid.doubt is Doubt.MASK


@given(st.integers(1, 4), st.integers(1, 8), st.integers(1, 100), st.integers(1, 64))
def test_attention_is_two_products_and_causal_leaves_half(batch: int, heads: int, length: int, width: int) -> None:
    qkv = [[batch, length, heads, width]] * 3
    full = ["", "", "", "", "", str(length), str(length), "0.", "False", "False"]
    work = flop("aten::_flash_attention_forward", qkv, full)
    assert work == 4 * batch * heads * length * length * width
    causal = flop("aten::_flash_attention_forward", qkv, [*full[:8], "True", "False"])
    assert causal * 2 == work + work // length
    heads_first = [[batch, heads, length, width]] * 3
    assert flop("aten::_scaled_dot_product_flash_attention", heads_first, ["", "", "", "0.", "False"]) == work
    backward = ["", *full[:5], "", "", "5", "5", "0.", "False"]
    assert flop("aten::_flash_attention_backward", [[1], *qkv], backward) == work * 5 // 2


def test_packed_sequences_count_only_when_all_are_as_long() -> None:
    packed = [[64, 8, 32], [64, 8, 32], [64, 8, 32], [5], [5], [], [], [], []]
    values = ["", "", "", "", "", "16", "16", "0.", "False"]
    assert flop("aten::_flash_attention_forward", packed, values) == 4 * 4 * 8 * 16 * 16 * 32
    ragged = [*values[:5], "20", "20", *values[7:]]
    assert cost("aten::_flash_attention_forward", Call(packed, [BF16] * 3, ragged)) is None


def test_an_unsaid_mask_is_a_doubt_and_not_a_discount() -> None:
    found = cost("aten::_flash_attention_forward", Call([[1, 64, 2, 16]] * 3, [BF16] * 3, []))
    assert found is not None
    assert (found.flop, found.doubt) == (4 * 2 * 64 * 64 * 16, Doubt.CAUSAL)


@pytest.mark.parametrize(
    ("name", "dims", "types", "values"),
    [
        ("aten::mm", [[4, 5], [6, 7]], [BF16, BF16], []),  # inner sizes differ
        ("aten::mm", [[4, 5]], [BF16], []),
        ("aten::mm", [[4, -5], [-5, 7]], [BF16, BF16], []),
        ("aten::mm", [[4, True], [1, 7]], [BF16, BF16], []),
        ("aten::mm", [["4", 5], [5, 7]], [BF16, BF16], []),
        ("aten::mm", [[4, 5], [5, 7]], ["c10::complex<float>"] * 2, []),
        ("aten::mm", [[4, 5], [5, 7]], [], []),  # no type, none assumed
        ("aten::cudnn_convolution", [[32, 3, 224, 224], [64, 3, 7, 7]], ["float"] * 2, []),  # no stride
        (
            "aten::cudnn_convolution",
            [[1, 3, 8, 8], [4, 3, 3, 3]],
            ["float"] * 2,
            ["", "", "[0, 0]", "[0, 0]", "[1, 1]"],
        ),
        ("aten::_flash_attention_forward", [[1, 64, 2, 16]], [BF16], []),
        ("vllm::unified_attention_with_output", [[8192, 64, 64]] * 3, [BF16] * 3, []),
        ("aten::relu", [[4, 5]], [BF16], []),
        ("aten::mm", [[1 << 40, 1 << 40], [1 << 40, 1 << 40]], [BF16, BF16], []),
        ("aten::linear", [[2] * 5000, [2, 2]], [BF16, BF16], []),
    ],
)
def test_what_is_not_settled_has_no_cost(name: str, dims: list[Any], types: list[Any], values: list[Any]) -> None:
    assert cost(name, Call(dims, types, values)) is None


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text() | st.floats(), st.lists, max_leaves=12))
def test_any_recorded_nonsense_is_survived(nonsense: Any) -> None:
    thing = nonsense if isinstance(nonsense, list) else [nonsense]
    for name in ("aten::mm", "aten::addmm", "aten::convolution", "aten::convolution_backward",
                 "aten::_flash_attention_forward", "flash_attn::_flash_attn_varlen_forward"):  # fmt: skip
        found = cost(name, Call(thing, thing, thing, "bf16"))
        assert found is None or found.flop >= 0


def test_text_of_shapes_is_read_and_shown() -> None:
    assert parse("[ [\n 1,\n 2 ], [] ]") == [[1, 2], []]
    assert parse("[" * 70_000) is None
    assert parse("[" * 60_000) is None
    assert parse('{"a": 1}') is None
    assert shown("[[768], [788, 768], [768, 768], [], [[3], [4]]]") == "768, 788x768, 768x768, [...]"
