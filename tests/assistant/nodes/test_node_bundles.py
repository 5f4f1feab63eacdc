"""A folder of recordings: what is found in it, read by a real child, and what is wrong with some of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.nodes import Found, Look
from assistant.nodes.bundles import Told, found_in, line_of, looks_of, stamp, told_in
from assistant.nodes.child import reading
from assistant.nodes.gather import wanted
from knowledge.errors import UsageError
from knowledge.language import Text
from tests.conftest import ROOT
from tests.served_jobs import running_jobs

DEMOS = ROOT / "assistant" / "demos"
TEXTS = st.builds(Text, st.text(max_size=12), st.text(max_size=12))
FOUND = st.builds(
    Found,
    st.text(max_size=8),
    TEXTS,
    st.sampled_from(("error", "warning")),
    st.text(max_size=8),
    st.none() | st.integers(),
)
LOOKS = st.builds(
    Look, st.sampled_from(("ok", "unknown")), TEXTS, st.none() | st.integers(), st.just("bundle"), st.just("/a b"), st.none(),
    st.lists(FOUND, max_size=3).map(tuple),
)  # fmt: skip


@given(st.builds(Told, st.just("/a b"), st.text(max_size=8), st.none() | LOOKS, TEXTS))
def test_what_the_child_says_is_what_is_heard(told: Told) -> None:
    line = line_of(told)
    assert "\n" not in line
    assert told_in(line) == told


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    out = tmp_path / "fleet"
    shutil.copytree(DEMOS / "off-the-bus" / "bundle", out / "sick")
    shutil.copytree(DEMOS / "healthy" / "bundle", out / "well" / "bundle")
    (out / "broken.tar.gz").write_bytes(b"no archive")
    (out / "notes.txt").write_text("not a recording")
    (out / ".hidden").mkdir()
    return out


def children() -> set[int]:
    """Processes begun by this one, but for the jobs of all workers.

    What those began is not asked: a database for other tests may be among them, and begins and ends processes at any time.
    """
    return {child.pid for child in psutil.Process().children()} - running_jobs()


@pytest.mark.process
def test_recordings_are_found_and_read_one_by_one(folder: Path) -> None:
    before = children()
    paths = found_in(str(folder))
    assert [os.path.relpath(p, folder) for p in paths] == ["broken.tar.gz", "sick", "well/bundle"]
    told = list(reading(paths))
    assert [t.path for t in told] == paths
    looks, troubles = looks_of(told)
    assert sorted(look.state for each in looks.values() for look in each) == ["ok", "unhealthy"]
    assert list(troubles) == ["broken.tar.gz"]
    assert "broken.tar.gz" in troubles["broken.tar.gz"].en
    assert children() <= before


@pytest.mark.process
def test_who_gives_up_leaves_no_child(folder: Path) -> None:
    before = children()

    class Enough(Exception):
        pass

    def check() -> None:
        raise Enough

    with pytest.raises(Enough):
        list(reading(found_in(str(folder)), check=check))
    assert children() <= before


def test_a_recording_that_is_written_anew_has_another_stamp(folder: Path) -> None:
    path = folder / "sick"
    before = stamp(str(path))
    os.utime(path / "manifest.json", (1, 1))
    assert stamp(str(path)) != before


def test_what_is_wanted(tmp_path: Path) -> None:
    assert wanted("gpu[1-3]").names == ("gpu1", "gpu2", "gpu3")
    assert wanted(str(tmp_path)).folder == str(tmp_path)
    assert wanted(" ") == wanted("")
    for bad in ("/nowhere/at/all", "gpu[3-", "gpu[1-999999]"):
        with pytest.raises(UsageError):
            wanted(bad)
