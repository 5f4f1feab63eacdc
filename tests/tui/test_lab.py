"""What the tests of the app look at is what they say it is."""

from __future__ import annotations

from pathlib import Path

from tests.tui.lab import BUS, BUS_GPUS, DEMOS, thinned


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_small_recording_is_that_of_the_demo(tmp_path: Path) -> None:
    made = thinned(DEMOS / "off-the-bus" / "bundle", tmp_path / "made", BUS_GPUS)
    assert contents(made) == contents(Path(BUS[1]))
