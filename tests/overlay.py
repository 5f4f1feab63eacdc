"""A checkout with more files, an interpreter with fewer packages: made of links, so that neither needs patching."""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path

from knowledge.compiled import cache_dir
from tests.conftest import ROOT

PACKAGES = ("assistant", "rules", "probes", "knowledge", "tui")


def checkout(folder: Path, *, without: str = "") -> Path:
    """The packages below `folder`, file by file as links: what is written beside them is found as if it were theirs.

    What is compiled already is linked too; Python writes what is not into folders of its own. `without`: a folder that stays empty.
    """
    for package in PACKAGES:
        for at, below, names in os.walk(ROOT / package):
            here = folder / Path(at).relative_to(ROOT)
            here.mkdir(parents=True)
            if here == folder / without:
                below.clear()
                continue
            for name in names:
                (here / name).symlink_to(Path(at) / name)
    return folder


def compiled_data(folder: Path) -> Path:
    """A cache of compiled data below `folder`, with what is compiled by now: another version at work would take that away."""
    own = folder / "cache"
    with suppress(shutil.Error, OSError):  # it is at work just now: what lacks is compiled
        shutil.copytree(cache_dir(), own)
    return own


def interpreter_without(folder: Path, *packages: str) -> tuple[list[str], dict[str, str]]:
    """The start of a command line and an environment: this Python, in which `packages` (distributions) are not installed."""
    absent = {re.sub(r"[-_.]+", "_", name) for name in packages}
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if re.split(r"[-.]", entry.name, maxsplit=1)[0] not in absent:
            (folder / entry.name).symlink_to(entry)
    return [sys.executable, "-S"], os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
