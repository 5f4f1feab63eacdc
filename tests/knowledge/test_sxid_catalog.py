"""Laws of the SXid catalogue and of what follows from an SXid."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.catalog.sxid import Chip, DriverSeverity, GuideSeverity, advise, all_sxids, fatal_word, sxid
from knowledge.catalog.xid import Severity
from tests.cases import each

BUCKETS = {"", "MONITOR", "RESET_GPU", "RESTART_VM", "RESTART_BM"}
CODES = [e.code for e in all_sxids()]


def test_the_catalogue_is_complete_and_bilingual() -> None:
    assert len(all_sxids()) == 399
    assert sorted(set(CODES)) == CODES
    for e in all_sxids():
        assert e.mnemonic.startswith("NVSWITCH_ERR_HW_")
        assert ": " in e.title.en
        assert "_" not in e.title.en.replace("PHY_A", "")
        assert any("\u4e00" <= c <= "\u9fff" for c in e.title.zh), e.code


def test_titles_name_the_thing() -> None:
    titles = [e.title.en for e in all_sxids()]
    assert len(titles) - len(set(titles)) == 0


def test_guide_and_driver_counts() -> None:
    assert sum(e.always_fatal for e in all_sxids()) == 21
    assert sum(bool(e.severity_driver) for e in all_sxids()) == 232
    assert sum(e.severity_guide is not GuideSeverity.BLANK for e in all_sxids()) == 93


@each(
    ("word", "said"),
    [("Fatal", True), ("fatal", True), ("Non-fatal", False), ("Nonfatal", False), ("non-fatal,", False), ("", None)],
)
def test_words(word: str, said: bool | None) -> None:
    assert fatal_word(word) is said


@given(st.sampled_from(CODES), st.sampled_from(["Fatal", "Non-fatal"]), st.sampled_from([None, *Chip]))
def test_the_word_of_the_line_decides(code: int, word: str, chip: Chip | None) -> None:
    entry = sxid(code)
    assert entry is not None
    assert entry.fatal(word, chip) is (word == "Fatal")
    advice = advise(code, word, chip)
    assert advice.bucket in BUCKETS - {""}
    assert (advice.bucket == "MONITOR") == (word == "Non-fatal")
    assert (advice.severity is Severity.CRITICAL) == (word == "Fatal")


@given(st.sampled_from(CODES), st.sampled_from([None, *Chip]))
def test_without_a_word_only_what_is_unanimous_counts(code: int, chip: Chip | None) -> None:
    entry = sxid(code)
    assert entry is not None
    fatal = entry.fatal("", chip)
    words = {w for c, found in entry.severity_driver.items() if chip in (None, c) for w in found}
    if DriverSeverity.CONTAIN in words and not entry.always_fatal:
        assert fatal is None
    assert (advise(code, "", chip).bucket == "") == (fatal is None)


def test_by_generation() -> None:
    assert advise(20034, "Fatal", Chip.LS10).bucket == "RESET_GPU"
    assert advise(20034, "Fatal", Chip.LR10, virtual=True).bucket == "RESTART_VM"
    assert advise(20034, "Fatal", Chip.LR10).bucket == "RESTART_BM"
    assert advise(20034, "Fatal").bucket == "RESET_GPU"
    assert advise(23001, "Fatal", Chip.LS10).bucket == "RESTART_BM"  # fatal to the whole fabric


def test_the_guides_advice_for_errors_that_are_not_fatal() -> None:
    assert "guest" in advise(12028, "Non-fatal").text.en
    assert advise(22013, "Non-fatal").severity is Severity.INFO
    assert advise(19084, "Non-fatal").severity is Severity.WARNING


def test_an_unknown_code_gets_no_action() -> None:
    assert sxid(99999) is None
    advice = advise(99999, "Fatal")
    assert (advice.bucket, advice.severity) == ("", Severity.CRITICAL)
    assert advise(99999).severity is None
