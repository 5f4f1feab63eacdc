"""NCCL's catalogue and the search for signatures over all families."""

from __future__ import annotations

import re

import re2
from hypothesis import given
from hypothesis import strategies as st

from knowledge.catalog import nccl
from knowledge.catalog.lookup import Family, Signature, find_signature, nearest, signature, signatures
from knowledge.compiled import shard
from tests.cases import each

HAN = re.compile("[\u4e00-\u9fff]")


def printed() -> list[Signature]:
    """What a log may hold."""
    return [s for s in signatures() if s.family is not Family.CUDA]


of_each = each("entry", printed, ids=lambda s: f"{s.family}:{s.id}")


def found(text: str) -> list[str]:
    return [m.signature.id for m in find_signature(text)]


@of_each
def test_an_entry_matches_its_sample_and_not_its_near_miss(entry: Signature) -> None:
    assert entry.id in found(entry.sample)
    assert entry.id not in found(entry.near_miss)


@of_each
def test_no_entry_swallows_the_sample_of_a_more_precise_one(entry: Signature) -> None:
    others = {m.signature.id for m in find_signature(entry.sample) if not m.signature.broader} - {entry.id}
    assert others == set(entry.overlaps)
    if not entry.broader:
        assert not find_signature(entry.sample)[0].signature.broader


@of_each
def test_an_entry_is_complete_in_both_languages(entry: Signature) -> None:
    for text in (entry.title, entry.cause, entry.check):
        assert text.en
        assert HAN.search(text.zh)
        assert not HAN.search(text.en)
    assert entry.sources
    assert entry.bucket in {b["name"] for b in shard("buckets")}


@of_each
def test_a_pattern_stays_cheap(entry: Signature) -> None:
    # Counted repetitions blow up the automaton that holds all patterns; a dot-star does not.
    assert not re.search(r"\{\d+,?\d*\}", entry.pattern)
    assert not re2.compile(entry.pattern).search("")


def test_the_catalogue_holds_what_it_promises() -> None:
    assert len(signatures(Family.NCCL)) >= 40
    assert len(signatures(Family.PYTORCH)) >= 40
    assert len({s.id for s in signatures()}) == len(signatures())
    assert signature("duplicate-gpu") is not None
    assert signature("no-such-thing") is None


def test_result_codes_are_the_eight_of_nccl() -> None:
    assert [(s.number, s.symbol) for s in nccl.results()] == [
        (0, "ncclSuccess"), (1, "ncclUnhandledCudaError"), (2, "ncclSystemError"), (3, "ncclInternalError"),
        (4, "ncclInvalidArgument"), (5, "ncclInvalidUsage"), (6, "ncclRemoteError"), (7, "ncclInProgress"),
    ]  # fmt: skip
    assert nccl.result("6") is nccl.result("NcclRemoteError") is nccl.result(6)
    assert nccl.result(8) is None
    assert all(s.broader for s in nccl.results())  # they name the place that failed, seldom the cause


def test_completion_states_carry_the_numbers_of_verbs() -> None:
    numbers = {s.symbol: s.number for s in nccl.completions()}
    assert numbers["IBV_WC_LOC_PROT_ERR"] == 4
    assert numbers["IBV_WC_WR_FLUSH_ERR"] == 5
    assert numbers["IBV_WC_REM_INV_REQ_ERR"] == 9
    assert numbers["IBV_WC_REM_ACCESS_ERR"] == 10
    assert numbers["IBV_WC_RETRY_EXC_ERR"] == 12
    assert numbers["IBV_WC_RNR_RETRY_EXC_ERR"] == 13
    assert nccl.completion("RETRY_EXC_ERR") is nccl.completion(12) is nccl.completion("IBV_WC_RETRY_EXC_ERR")
    assert nccl.completion(0) is None


@each("number", lambda: [s.number for s in nccl.completions()])
def test_both_ways_of_printing_a_completion_are_read(number: int) -> None:
    entry = nccl.completion(number)
    assert entry is not None
    head = "h1:7:9 [0] NCCL WARN NET/IB: Got completion from peer 10.0.0.9<4411> with"
    old = f"{head} status={number} opcode=0 len=0 vendor err 12 (Send)"
    new = f"{head} status={entry.symbol}({number}) opcode=IBV_WC_SEND(0) vendor_err=129"
    assert found(old)[0] == entry.id
    assert found(new)[0] == entry.id
    assert entry.id not in found(f"{head} status={number}9 opcode=0")


def test_precise_comes_before_code_before_broad() -> None:
    text = (
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:9, unhandled cuda error\n"
        "n1:5:6 [2] init.cc:402 NCCL WARN Cuda failure 802 'system not yet initialized'\n"
    )
    assert found(text) == ["fabric-not-ready", "cuda-802", "nccl-unhandledcudaerror", "nccl-cuda-failure"]
    assert [m.line for m in find_signature(text)] == [2, 2, 1, 2]


def test_a_line_is_quoted_clean_and_counted_in_any_line_ending() -> None:
    match = find_signature(
        "one\r\ntwo\r\x1b[31mDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000\x1b[0m\n"
    )[0]
    assert match.line == 3
    assert match.text == "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000"


def test_a_colour_code_or_case_does_not_hide_a_signature() -> None:
    assert found("NCCL WARN dUPLICATE \x1b[1mgpu\x1b[0m detected : rank 3 and rank 2 both on cuda device 5e000") == [
        "duplicate-gpu"
    ]


def test_the_middle_of_an_endless_text_is_not_read_but_its_ends_are() -> None:
    line = "Mismatched NCCL version detected : rank 8 version 22304 rank 0 version 22105\n"
    noise = "step 1 | loss: 2.0\n" * 120_000
    assert found(line + noise) == found(noise + line) == ["version-mismatch"]


def test_a_phrase_without_a_pattern_finds_its_neighbours() -> None:
    assert "ib-retry-exceeded" in [s.id for s in nearest("transport retries exceeded on IB")]
    assert nearest("") == []
    assert nearest("qqq zzz") == []


def test_all_samples_in_one_log_are_all_found() -> None:
    text = "\n".join(s.sample for s in printed())
    seen = set(found(text))
    # Numbers decide between the kinds of shortage, so each message counts on its own.
    assert {s.id for s in printed()} <= seen


@given(st.text(max_size=400))
def test_no_text_is_too_odd_for_a_lookup(text: str) -> None:
    matches = find_signature(text)
    assert [m.signature.id for m in matches] == found(text)
    assert all(1 <= m.line <= text.count("\n") + text.count("\r") + 1 for m in matches)
    assert len(nearest(text)) <= 5
    nccl.result(text)
    nccl.completion(text)


@given(
    st.deferred(lambda: st.sampled_from(printed())),
    st.text(st.characters(exclude_characters="\r\n"), max_size=40),
    st.text(max_size=40),
)
def test_what_stands_around_a_line_does_not_hide_it(entry: Signature, before: str, after: str) -> None:
    if entry.when or entry.sample.startswith(" "):  # numbers that follow would belong to the message
        return
    assert entry.id in found(f"{before}\n{entry.sample}\n{after}")


@given(st.text("\ud800\udfff ab", min_size=1, max_size=20))
def test_lone_surrogates_are_read_as_marks(text: str) -> None:
    assert "closed-by-peer" in found(f"{text}\nsocketProgress: Connection closed by remote peer n1<5>")
