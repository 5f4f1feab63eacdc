"""CUDA's, cuBLAS's and cuDNN's status codes."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from knowledge.catalog import cuda
from knowledge.catalog.cuda import Api, CudaStatus, Hardware, Sticky
from knowledge.catalog.lookup import Family, find_signature
from knowledge.compiled import shard
from tests.cases import each

HAN = re.compile("[\u4e00-\u9fff]")
of_each = each("entry", cuda.all_statuses, ids=lambda e: e.id)
STATUSES = st.deferred(lambda: st.sampled_from(cuda.all_statuses()))


def codes(text: str) -> list[str]:
    return [m.signature.id for m in find_signature(text) if m.signature.family is Family.CUDA]


@of_each
def test_an_entry_is_complete(entry: CudaStatus) -> None:
    for text in (entry.title, entry.cause, entry.check):
        assert text.en
        assert HAN.search(text.zh)
    assert entry.sources
    assert entry.bucket in {b["name"] for b in shard("buckets")}


@of_each
def test_an_entry_is_found_by_each_of_its_names_and_messages(entry: CudaStatus) -> None:
    for name in filter(None, (entry.name, entry.driver_name)):
        assert cuda.find(name) is entry
        assert cuda.find(name.upper()) is entry
        assert codes(f"kernel.cu:12: {name} at launch") == [entry.id]
        assert entry.id not in codes(f"{name}s")
    same = {e.id for e in cuda.all_statuses() if set(e.messages) & set(entry.messages)} | {entry.id}
    for message in entry.messages if entry.code else ():
        assert set(codes(f"RuntimeError: CUDA error: {message}")) == same
        assert entry.id in codes(f"Triton Error [CUDA]: {message}")
    if entry.api is Api.CUDA and entry.code:
        assert codes(f"main.cu:9: CUDA error {entry.code} in step") == [entry.id]
        assert codes(f"NCCL WARN Cuda failure {entry.code} 'x'") == [entry.id]
        assert entry.id not in codes(f"CUDA error {entry.code}7")


def test_short_messages_need_cuda_before_them() -> None:
    assert codes("tar: invalid argument") == []
    assert codes("mount: operation not permitted") == []
    assert codes("GPUassert: CUDA says: invalid argument") == ["cuda-1"]
    assert codes("Error 802: system not yet initialized") == ["cuda-802"]


def test_a_message_within_a_longer_one_is_not_counted_but_another_line_with_it_is() -> None:
    first = "CUDA error: operation not permitted when stream is capturing"
    assert codes(first) == ["cuda-900"]
    assert codes(f"{first}\nCUDA error: operation not permitted") == ["cuda-900", "cuda-800"]


def test_numbers_are_those_of_the_headers() -> None:
    names = {e.code: e.name for e in cuda.all_statuses(Api.CUDA)}
    assert len(names) >= 110
    assert names[2] == "cudaErrorMemoryAllocation"
    assert names[12] == "cudaErrorInvalidPitchValue"  # 11 before CUDA 10.1
    assert names[214] == "cudaErrorECCUncorrectable"
    assert names[219] == "cudaErrorInvalidGraphicsContext"
    assert names[220] == "cudaErrorNvlinkUncorrectable"
    assert names[700] == "cudaErrorIllegalAddress"
    assert names[719] == "cudaErrorLaunchFailure"
    assert names[999] == "cudaErrorUnknown"
    driver_only = {e.code: e.name for e in cuda.all_statuses(Api.DRIVER)}
    assert driver_only == {
        47: "CUDA_ERROR_MULTICAST_RESOURCE_FULL", 202: "CUDA_ERROR_CONTEXT_ALREADY_CURRENT",
        916: "CUDA_ERROR_KEY_ROTATION",
    }  # fmt: skip


def test_what_breaks_the_context_and_what_can_be_the_device() -> None:
    sticky = {e.code for e in cuda.all_statuses(Api.CUDA) if e.sticky is Sticky.YES}
    assert sticky == {226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911}
    assert {e.code for e in cuda.all_statuses() if e.sticky is Sticky.IN_PRACTICE} == {214, 220, 999}
    assert {e.code for e in cuda.all_statuses() if e.hardware is Hardware.YES} == {214, 220}
    possible = {e.code for e in cuda.all_statuses(Api.CUDA) if e.hardware is Hardware.POSSIBLE}
    assert {226, 714, 715, 716, 717, 718, 719, 999} <= possible
    assert not possible & {2, 9, 710}


def test_the_check_says_that_errors_come_late_exactly_when_the_context_is_broken() -> None:
    for entry in cuda.all_statuses():
        assert ("CUDA_LAUNCH_BLOCKING" in entry.check.en) == entry.corrupts_context
        assert ("CUDA_LAUNCH_BLOCKING" in entry.check.zh) == entry.corrupts_context


def test_lookup_by_number_and_library() -> None:
    assert cuda.find("719") is cuda.status(719)
    assert cuda.find(" 47 ") is cuda.status(47, Api.DRIVER)
    assert cuda.status(13, Api.CUBLAS) is cuda.find("cublas_status_execution_failed")
    assert cuda.status(13) is cuda.find("cudaErrorInvalidSymbol")
    assert cuda.find("CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH") is cuda.status(1002, Api.CUDNN)
    assert cuda.find("14") is None
    assert cuda.find("cudaErrorNoSuch") is None


@given(st.text(max_size=60) | st.integers(-(10**12), 10**12).map(str))
def test_any_word_is_answered(word: str) -> None:
    found = cuda.find(word)
    assert found is None or found in cuda.all_statuses()


@given(STATUSES, STATUSES)
def test_two_errors_on_two_lines_are_both_read(one: CudaStatus, two: CudaStatus) -> None:
    assert {one.id, two.id} == set(codes(f"a: {one.name}\nb: {two.name}"))
