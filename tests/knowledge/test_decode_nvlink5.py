"""XID 144-150: every row of NVIDIA's sheet round-trips, and nothing else is ever decoded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.catalog.nvlink5 import CODES, Fatality, Layout, Mask, Row, decode_nvlink5, rows, why_not
from tests.cases import each

WORDS = st.integers(0, 0xFFFFFFFF)
ROWS = rows()


def filled(mask: Mask, noise: int) -> int:
    """A word that fits `mask`, its free bits taken from `noise`."""
    return mask.value | (noise & ~mask.bits & 0xFFFFFFFF)


def test_the_sheet() -> None:
    assert len(ROWS) == 95
    assert {row.xid for row in ROWS} == set(CODES)
    assert {row.action for row in ROWS} == {"IGNORE", "RESET_GPU", "XID_154_EVAL"}
    assert len({row.id for row in ROWS}) == 95


def test_masks_are_read_from_bit_31_down() -> None:
    mask = Mask.of("------100110----------0111000110")
    assert (mask.bits, mask.value) == (0x03F003FF, 0x026001C6)
    assert Mask.of("-" * 32).fits(0xFFFFFFFF)


@given(st.sampled_from(ROWS), st.sampled_from(list(Layout)), WORDS, WORDS)
def test_each_row_round_trips(row: Row, layout: Layout, noise: int, status: int) -> None:
    word = filled(row.masks[layout], noise)
    for value in row.status or (status,):
        found = decode_nvlink5(row.xid, row.units[layout], word, value)
        assert found is not None, row.id
        assert (found.action, found.investigate, found.severity) == (row.action, row.investigate, row.severity)
        assert found.reason == word >> 20 & 0x3F
        assert not found.promoted
        if row.xid != 150:  # its masks are all zero in both layouts
            assert found.layout is layout


@given(st.sampled_from([row for row in ROWS if row.second]), st.sampled_from(list(Layout)), WORDS)
def test_the_second_mask_has_its_own_action(row: Row, layout: Layout, noise: int) -> None:
    found = decode_nvlink5(row.xid, row.units[layout], filled(row.second[layout], noise), row.status[0])
    assert found is not None
    assert (found.action, found.promoted, found.fatality) == ("RESET_GPU", True, Fatality.GPU)
    assert row.action == "IGNORE"


@given(st.sampled_from(list(CODES)), WORDS)
def test_no_word_fits_two_units(code: int, word: int) -> None:
    """So the layout is told by the word itself, and the printed unit never has to decide between units."""
    fitting = [row for row in ROWS if row.xid == code and row.layout(word)]
    names = {row.units[layout] for row in fitting if (layout := row.layout(word))}
    assert len(names) <= 1 or code == 150


@given(st.sampled_from(list(CODES)), st.text(max_size=12), st.none() | WORDS, st.none() | WORDS)
def test_what_is_decoded_stands_in_the_sheet(code: int, unit: str, word: int | None, status: int | None) -> None:
    found = decode_nvlink5(code, unit, word, status)
    if found is None:
        why = why_not(code, word, status)
        assert why.en
        assert why.zh
        return
    row = next(r for r in ROWS if r.id == found.row)
    assert word is not None
    assert row.xid == code
    assert row.layout(word)
    assert not row.status or status in row.status


@each(
    ("code", "word", "status"),
    [
        (149, None, 0),  # no hex group
        (149, 0x03F001C6, 0),  # a reason that no row has
        (145, 0x000000E2, 0x3),  # two bits at once: no row
        (145, 0x001000E2, 0x8),  # a reason where none belongs
        (145, 0x000000E2, None),  # the status is cut off
        (144, 0xDEADBEEF, 1),
        (13, 0x00000021, 1),  # not an NVLink5 code
    ],
)
def test_no_row_no_guess(code: int, word: int | None, status: int | None) -> None:
    assert decode_nvlink5(code, "", word, status) is None
    assert why_not(code, word, status).en


def test_rows_without_a_status_need_none() -> None:
    found = decode_nvlink5(149, "NETIR_LINK_EVT", 0x004501C6, None)
    assert found is not None
    assert (found.action, found.investigate, found.reason) == ("RESET_GPU", "INVESTIGATE_LINK_SI", 4)


def test_the_table_outranks_the_word() -> None:
    found = decode_nvlink5(149, "NETIR_LINK_EVT", 0x026001C6, 0)
    assert found is not None
    assert (found.reason, found.action, found.fatality) == (38, "IGNORE", Fatality.LINK)


def test_a_unit_that_contradicts_the_word_is_said() -> None:
    found = decode_nvlink5(145, "RLW_REMAP", 0x000000E2, 0x8)
    assert found is not None
    assert found.unit == "RLW_SRC_TRACK"
    assert any("RLW_REMAP" in c.en for c in found.caveats)


@pytest.mark.parametrize(("unit", "status"), [("MSE degraded", 0), ("MSE degraded", 0xFFFFFFFF), ("MSE_WATCHDOG", 0)])
def test_150_has_no_bits_to_tell_its_rows_apart(unit: str, status: int) -> None:
    found = decode_nvlink5(150, unit, 0, status)
    assert found is not None
    assert (found.unit, found.action) == (unit, "RESET_GPU")
    assert any("both layouts" in c.en for c in found.caveats)


def test_the_link_number_within_the_word() -> None:
    numbered = decode_nvlink5(149, "NETIR_LINK_EVT", 0x0215E5C6, 0)
    none = decode_nvlink5(149, "NETIR", 0x000FE406, 0)
    assert numbered is not None
    assert none is not None
    assert (numbered.link, none.link) == (15, None)
