"""Frames, and the metrics in them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from assistant.live.frames import METRICS, SECOND, SILENT, Book, Frame, told, unresponsive
from knowledge.facts import vocabulary
from tests.assistant.live.live_lab import ADDRESSES, gpu_at, runs


def test_every_metric_has_its_fact_and_its_limit() -> None:
    for key, metric in METRICS.items():
        assert metric.key == key
        assert metric.fact in vocabulary()
        assert metric.title.en
        assert metric.title.zh
        assert not metric.limit or METRICS[metric.limit].unit == metric.unit


def test_a_gpu_is_found_by_its_address_and_called_by_its_number() -> None:
    one, other = gpu_at(ADDRESSES[0], 5, power=300.0), gpu_at(ADDRESSES[1], 5)
    frame = Frame(5, "n1", (one, other))
    assert frame.gpu(ADDRESSES[1]) is other
    assert frame.gpu("0000:ff:00.0") is None
    assert (one.label, one.value("power"), other.value("power")) == ("GPU 0", 300.0, None)


def test_a_call_that_hangs_is_named_in_both_languages() -> None:
    said = unresponsive("nvmlDeviceGetMemoryInfo", "GPU 3", 12.4)
    assert said.en == "driver unresponsive: nvmlDeviceGetMemoryInfo of GPU 3 has not returned for 12 s"
    assert said.zh == "驱动无响应：GPU 3 的 nvmlDeviceGetMemoryInfo 已 12 秒未返回"
    assert (
        unresponsive("nvmlInitWithFlags", "", 3.0).en
        == "driver unresponsive: nvmlInitWithFlags has not returned for 3 s"
    )


@given(runs(), st.integers(1, 6), st.sampled_from(ADDRESSES), st.integers(0, 10**6), st.none() | st.integers(0, 10**6))
def test_a_book_is_the_newest_frames(
    frames: list[Frame], capacity: int, pci: str, seconds: int, until: int | None
) -> None:
    book = Book(capacity)
    for frame in frames:
        book.append(frame)
    kept = frames[-capacity:]
    assert list(book.frames) == kept
    assert book.latest == (kept[-1] if kept else None)
    end = until * SECOND if until is not None else kept[-1].at if kept else 0
    wanted = [(f.at, told(f, pci, "power")) for f in kept if end - seconds * SECOND <= f.at <= end]
    assert book.series(pci, "power", seconds, None if until is None else end) == wanted


def test_last_good_values_are_none_of_the_moment() -> None:
    book, pci = Book(), ADDRESSES[0]
    good = gpu_at(pci, 5 * SECOND, power=300.0)
    book.append(Frame(5 * SECOND, "n1", (good,)))
    book.append(Frame(6 * SECOND, "n1", (replace(good, state=SILENT),)))
    assert book.series(pci, "power") == [(5 * SECOND, 300.0), (6 * SECOND, None)]
    assert book.last_good(pci, "power") == (5 * SECOND, 300.0)
    assert book.last_good(pci, "fan") is None
    book.append(Frame(5 * SECOND, "n1"))  # the clock was set back
    assert [f.at for f in book.frames] == [5 * SECOND]
