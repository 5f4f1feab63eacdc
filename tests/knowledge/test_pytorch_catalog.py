"""PyTorch's signatures, and what its out-of-memory messages tell."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from knowledge.catalog.lookup import find_signature
from knowledge.catalog.pytorch import OomKind, read_oom
from tests.cases import each

GIB = 1 << 30


def message(tried: float, total: float, free: float, process: float, allocated: float, idle: float) -> str:
    """PyTorch 2.1 and later; all in GiB."""
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried:.2f} GiB. GPU 5 has a total capacity of "
        f"{total:.2f} GiB of which {free:.2f} GiB is free. Including non-PyTorch memory, this process has {process:.2f} GiB "
        f"memory in use. Of the allocated memory {allocated:.2f} GiB is allocated by PyTorch, and {idle:.2f} GiB is reserved "
        "by PyTorch but unallocated. If reserved but unallocated memory is large try setting expandable_segments."
    )


@each(
    ("text", "kind", "first"),
    [
        (message(4, 44.5, 1.0, 43.4, 42.8, 0.1), OomKind.FULL, "oom-card-full"),
        (message(4, 44.5, 1.0, 43.4, 30.0, 12.9), OomKind.FRAGMENTED, "oom-fragmentation"),
        (message(4, 44.5, 3.95, 40.5, 39.8, 0.1), OomKind.NEAR_FIT, "oom-near-fit"),
        (message(4, 44.5, 1.0, 21.0, 20.0, 0.4), OomKind.OTHER_PROCESS, "oom-other-process"),
        ("CUDA out of memory. Tried to allocate 9.00 GiB. GPU 1 has a total capacity of 23.60 GiB of which 8.99 GiB is free",
         OomKind.NEAR_FIT, "oom-near-fit"),
        ("RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 23.70 GiB total capacity; 21.10 GiB already "
         "allocated; 60.00 MiB free; 21.30 GiB reserved in total by PyTorch)", OomKind.FULL, "oom-card-full"),
        ("RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 23.70 GiB total capacity; 12.10 GiB already "
         "allocated; 60.00 MiB free; 22.30 GiB reserved in total by PyTorch)", OomKind.FRAGMENTED, "oom-fragmentation"),
        ("HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 63.98 GiB of which 0 bytes is free. "
         "Including non-PyTorch memory, this process has 63.90 GiB memory in use. Of the allocated memory 62.00 GiB is "
         "allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.", OomKind.FULL, "oom-card-full"),
        ("CUDA out of memory. Tried to allocate 9.00 GiB.", OomKind.UNKNOWN, "cuda-2"),
    ],
)  # fmt: skip
def test_the_numbers_tell_the_kind(text: str, kind: OomKind, first: str) -> None:
    oom = read_oom(text)
    assert oom is not None
    assert oom.kind is kind
    assert find_signature(text)[0].signature.id == first


def test_a_cap_of_the_program_goes_before_all_else() -> None:
    text = message(4, 44.5, 30.0, 14.0, 13.5, 0.2).replace("Of the allocated", "14.50 GiB allowed; Of the allocated")
    oom = read_oom(text)
    assert oom is not None
    assert (oom.kind, oom.allowed) == (OomKind.LIMITED, round(14.5 * GIB))


def test_each_number_lands_in_its_field() -> None:
    oom = read_oom(message(1, 2, 0.25, 1.5, 1.25, 0.125).replace("0.12 GiB is reserved", "128.00 MiB is reserved"))
    assert oom is not None
    assert (oom.tried, oom.total, oom.free, oom.process, oom.allocated, oom.idle, oom.others) == (
        GIB, 2 * GIB, GIB // 4, 3 * GIB // 2, 5 * GIB // 4, GIB // 8, GIB // 4,
    )  # fmt: skip


def test_other_processes_that_are_named_do_not_shift_the_numbers() -> None:
    text = message(4, 44.5, 1.0, 21.0, 20.0, 0.4)
    named = text.replace(
        "Including non",
        "Process 991 has 22.40 GiB memory in use. Process 17 has 96.00 MiB memory in use. Including non",
    )
    assert read_oom(named) == read_oom(text)


def test_of_two_messages_each_keeps_its_own_numbers() -> None:
    full, fragmented = message(4, 44.5, 1.0, 43.4, 42.8, 0.1), message(2, 44.5, 1.0, 43.4, 30.0, 12.9)
    assert {m.signature.id for m in find_signature(f"{full}\n{fragmented}") if not m.signature.broader} == {
        "oom-card-full", "oom-fragmentation",
    }  # fmt: skip


def test_text_without_a_message_is_none() -> None:
    assert read_oom("") is None
    assert read_oom("the card is out of memory") is None


sizes = st.floats(0.01, 500, allow_nan=False).map(lambda x: round(x, 2))


@given(st.tuples(sizes, sizes, sizes, sizes, sizes, sizes))
def test_every_full_message_has_a_kind_and_exactly_one_entry(
    n: tuple[float, float, float, float, float, float],
) -> None:
    text = message(*n)
    oom = read_oom(text)
    assert oom is not None
    assert oom.kind not in (OomKind.UNKNOWN, OomKind.LIMITED)
    precise = [m.signature.when for m in find_signature(text) if m.signature.when]
    assert precise == [f"oom:{oom.kind}"]


@given(sizes, sizes, sizes, st.floats(0.2, 0.9))
def test_idle_memory_never_reads_as_a_full_card(tried: float, free: float, process: float, share: float) -> None:
    assume(tried > free * 1.05)
    idle = round(process * share, 2)
    assume(idle >= 0.1 * process > 0.05)
    oom = read_oom(message(tried, free + process, free, process, process - idle, idle))
    assert oom is not None
    assert oom.kind is OomKind.FRAGMENTED


@given(st.text(max_size=300), st.text(max_size=300))
def test_no_text_around_the_head_makes_the_reader_fail(before: str, after: str) -> None:
    oom = read_oom(f"{before}CUDA out of memory. Tried to allocate 2.00 MiB. {after}")
    assert oom is not None
    read_oom(after)


@each(
    ("text", "first"),
    [
        ("RuntimeError: CUDA error: unspecified launch failure\nCUDA kernel errors might be asynchronously reported", "cuda-719"),
        ("[rank3]: torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n[rank3]: RuntimeError: CUDA error: an illegal"
         " memory access was encountered", "cuda-700"),
        ("/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1553: indexSelectSmallIndex: block: [9,0,0], thread: [3,0,0] Assertion"
         " `srcIndex < srcSelectDimSize` failed.\nRuntimeError: CUDA error: device-side assert triggered", "assert-embedding-index"),
        ("ImportError: xformers/_C.so: undefined symbol: _ZN3c104cuda9SetDeviceEa", "extension-abi"),
        ("Failed to initialize NVML: Unknown Error", "nvml-unknown-in-container"),
        ("Process rank 1 OSError: [Errno 28] No space left on device", "disk-full"),
    ],
)  # fmt: skip
def test_common_stories(text: str, first: str) -> None:
    assert find_signature(text)[0].signature.id == first
