"""XID 74: bits of the seven registers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.catalog.decode_nvlink74 import Certainty, LinkClass, bit_groups, decode_nvlink74

WORDS = st.integers(0, 0xFFFFFFFF)
REGISTERS = st.lists(WORDS, min_size=7, max_size=7)


@given(REGISTERS)
def test_every_set_bit_is_reported_and_no_other(words: list[int]) -> None:
    found = decode_nvlink74(words)
    assert [sum(1 << b for b in found.of(n)) for n in range(1, 8)] == words
    for bit in found.bits:
        listed = (bit.register, bit.bit) in bit_groups()
        assert listed == (bit.group.link_class is not LinkClass.UNKNOWN)
        assert listed == (bit.group.certainty is not Certainty.NONE)


def test_no_bit_no_class() -> None:
    assert decode_nvlink74([0] * 7).link_class is None


@given(REGISTERS, st.integers(0, 31))
def test_one_more_bit_never_weakens(words: list[int], bit: int) -> None:
    before, after = decode_nvlink74(words), decode_nvlink74([words[0] | 1 << bit, *words[1:]])
    assert after.link_class is not None
    assert before.link_class is None or after.link_class.rank >= before.link_class.rank


def test_only_four_registers_have_published_bits() -> None:
    assert {register for register, _ in bit_groups()} == {1, 3, 4, 5}


def test_classes() -> None:
    def of(register: int, bit: int) -> LinkClass:
        return bit_groups()[register, bit].link_class

    assert of(1, 20) is LinkClass.SYMPATHETIC
    assert of(1, 4) is LinkClass.ECC_PARITY
    assert of(1, 21) is LinkClass.SIGNAL_INTEGRITY
    assert of(1, 28) is LinkClass.MECHANICAL
    assert of(3, 16) is LinkClass.FIELD_DIAG_REPEATED
    assert of(4, 18) is LinkClass.SYMPATHETIC_RESET
    assert of(5, 20) is LinkClass.ECC_THRESHOLD
    assert bit_groups()[1, 4].certainty is Certainty.ALL
    assert bit_groups()[3, 0].certainty is Certainty.HOPPER
