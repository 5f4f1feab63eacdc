"""A track tells what the frames told, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assistant.live.frames import SILENT, Frame, Gpu
from assistant.live.track import Track, untold

PCIS = ("0000:1a:00.0", "0000:3b:00.0")
_gpu = st.builds(
    Gpu, st.sampled_from(PCIS), values=st.dictionaries(st.sampled_from(["power", "temperature", "ecc_uncorrected"]), st.floats(0, 900)),
    state=st.sampled_from(["", "", SILENT]), reasons=st.sampled_from([(), ("sw_power_cap",)]),
)  # fmt: skip
_gpus = st.lists(_gpu, max_size=2, unique_by=lambda g: g.pci).map(tuple)
_frames = st.lists(st.builds(Frame, st.integers(0, 10**6), st.just("h"), _gpus), max_size=40)


@given(_frames, st.integers(0, 10**6), st.integers(0, 10**6))
def test_it_tells_what_the_frames_told_and_what_they_did_not(frames: list[Frame], a: int, b: int) -> None:
    since, until = sorted((a, b))
    track, kept = Track(100), list[Frame]()
    for frame in frames:
        track.add(frame)
        kept = [*(f for f in kept if f.at < frame.at), frame]  # a clock that was set back takes what came after with it
    for pci in PCIS:
        for metric in ("power", "temperature"):
            expected = [(f.at, _told(f, pci, metric)) for f in kept if since <= f.at <= until]
            assert list(track.series(pci, metric, since, until)) == expected
        held = [
            (f.at, g.reasons if (g := f.gpu(pci)) and not g.state else None) for f in kept if since <= f.at <= until
        ]
        assert list(track.held(pci, since, until)) == held


def _told(frame: Frame, pci: str, metric: str) -> float | None:
    """The last good values of a GPU that is silent were not told then."""
    g = frame.gpu(pci)
    return g.value(metric) if g is not None and g.state != SILENT else None


@given(_frames, st.integers(0, 10**6))
def test_the_gpus_of_then_have_the_values_of_then(frames: list[Frame], at: int) -> None:
    track = Track.of(frames)
    like = Frame(10**6, "h", tuple(Gpu(pci) for pci in PCIS))
    found = track.frame(like, at)
    if found is None:
        assert track.begin is None or at < track.begin
        return
    for g in found.gpus:
        *_, last = track.series(g.pci, "power", 0, at)
        assert found.at == last[0]
        assert g.value("power") == last[1]


@given(st.integers(1, 30), st.integers(1, 200))
def test_it_keeps_the_newest_and_not_much_more(capacity: int, count: int) -> None:
    track = Track(capacity)
    for at in range(count):
        track.add(Frame(at, "h", (Gpu(PCIS[0], values={"power": float(at)}),)))
    kept = [v for _, v in track.series(PCIS[0], "power", 0, count)]
    assert kept == [float(v) for v in range(count - len(kept), count)]
    assert min(capacity, count) <= len(kept) <= capacity + capacity // 4 + 1


def test_before_anything_was_read_nothing_is_told_and_the_reason_is() -> None:
    frame = Frame(
        5,
        "h",
        (Gpu(PCIS[0], 0, values={"power": 3.0}, missing={"fan": "unsupported: none"}, reasons=("hw_slowdown",)),),
    )
    gpu = untold(frame, 1).gpus[0]
    assert not gpu.values
    assert not gpu.reasons
    assert set(gpu.missing) == {"power", "fan"}
    assert all(why.startswith("not_asked: ") for why in gpu.missing.values())
