"""Files of a target by its own paths: no link of its leads out of its file system."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from probes.capture import _inroot


@pytest.fixture
def root(tmp_path: Path) -> Path:
    inside = tmp_path / "root"
    (inside / "data/deep").mkdir(parents=True)
    (inside / "data/file").write_text("inside")
    (tmp_path / "secret").write_text("outside")
    return inside


def test_links_stay_inside(root: Path) -> None:
    (root / "link").symlink_to("/data/file")
    (root / "data/deep/up").symlink_to("../../../../secret")
    (root / "out").symlink_to(root.parent / "secret")
    assert _inroot.read_at(str(root), "/data/file", 100) == b"inside"
    assert _inroot.read_at(str(root), "/data/../data/file", 100) == b"inside"
    assert _inroot.read_at(str(root), "/../secret", 100) is None
    assert _inroot.read_at(str(root), "/data/deep/up", 100) is None
    assert _inroot.read_at(str(root), "/out", 100) is None
    assert _inroot.read_at(str(root), "/link", 100) in (b"inside", None)  # None: a kernel before 5.6


def test_only_regular_files_are_read(root: Path) -> None:
    os.mkfifo(root / "fifo")
    assert _inroot.read_at(str(root), "/fifo", 100) is None
    assert _inroot.read_at(str(root), "/data", 100) is None
    assert _inroot.read_at(str(root), "/absent", 100) is None
    assert _inroot.read_at(str(root), "/data/file", 3) == b"ins"


def test_without_openat2_no_link_is_followed(root: Path) -> None:
    (root / "link").symlink_to("/data/file")
    base = os.open(root, os.O_PATH | os.O_DIRECTORY)
    try:
        with os.fdopen(_inroot._walked(base, "/data/file", os.O_RDONLY)) as file:
            assert file.read() == "inside"
        for path in ("/link", "/data/../data/file", "/", ""):
            with pytest.raises(OSError, match=r".+"):
                _inroot._walked(base, path, os.O_RDONLY)
    finally:
        os.close(base)
