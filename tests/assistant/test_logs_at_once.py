"""Several logs in processes of their own: as one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assistant.sources import read
from probes.many import cores

pytestmark = pytest.mark.process


def test_logs_that_are_read_side_by_side_give_what_they_give_one_by_one(tmp_path: Path) -> None:
    lines = [
        f"Mar  3 12:00:0{i} n{i} kernel: NVRM: Xid (PCI:0000:3b:00): {79 + i}, pid=1, name=x, text" for i in range(3)
    ]
    paths = []
    for number, line in enumerate(lines):
        (tmp_path / f"{number}.log").write_text(f"{line}\n" * 100)
        paths.append(str(tmp_path / f"{number}.log"))
    (tmp_path / "broken.log").write_bytes(b"\x7fELF" + bytes(100))
    paths.append(str(tmp_path / "broken.log"))
    said: list[str] = []
    together = read(paths, [], "n0", lambda name, *_: said.append(name), at_once=1)
    alone = read(paths, [], "n0")
    assert replace(together, observations=()) == replace(alone, observations=())
    assert together.observations == alone.observations
    assert cores() < 2 or set(said) <= set(paths)
