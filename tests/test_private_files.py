"""What gpudiag keeps for itself is nobody else's to read or to lock, whatever the umask and whatever was there before."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from knowledge.compiled import keep
from knowledge.whole import private_folder, private_lock, replace_file


@pytest.fixture(params=[0o000, 0o022])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("umask")
def test_files_locks_and_folders(tmp_path: Path) -> None:
    place = tmp_path / "a/b"
    os.close(private_lock(place / "x.lock"))
    replace_file(place / "x", b"")
    private_folder(place)
    assert {p.name: mode(p) for p in (tmp_path / "a", place, place / "x", place / "x.lock")} == {
        "a": 0o700, "b": 0o700, "x": 0o600, "x.lock": 0o600
    }  # fmt: skip
    (place / "link.lock").symlink_to(place / "x")
    with pytest.raises(OSError, match="link"):
        private_lock(place / "link.lock")


@pytest.mark.usefixtures("umask")
def test_a_shard_of_the_cache(tmp_path: Path) -> None:
    keep(tmp_path / "cache/words-a-b-c.json", b"{}")
    assert [mode(p) for p in (tmp_path / "cache", tmp_path / "cache/words-a-b-c.json")] == [0o700, 0o600]
