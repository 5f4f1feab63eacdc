"""Machines with GPUs for tests: a small library that speaks NVML's ABI, loaded by the real pynvml.

``folder(tmp, "lost")`` is a directory for LD_LIBRARY_PATH that holds the library and the name of its scenario, so that it
works where the environment is cleaned. Needs a C compiler (``cc``): without one, the tests skip.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.components import component
from tests.conftest import ROOT

SOURCE = ROOT / "tests" / "native" / "nvml.c"
COLLECTOR = ROOT / "probes" / "collectors" / "nvml.py"
NAME = "libnvidia-ml.so.1"
# What the machine is like. GPU indices are those that differ from the healthy ones.
SCENARIOS = {
    "healthy8": "8 busy H100, nothing wrong",
    "lost": "GPU 5 answers GPU_IS_LOST to live calls",
    "lost_handle": "GPU 5 does not even give a handle",
    "lost_handles": "GPUs 5 and 6 do not give a handle",
    "ecc_climbing": "GPU 2 has uncorrected errors, two more at each nvmlInit; a row waits for its remapping",
    "hung_call": "nvmlDeviceGetMemoryInfo_v2 of GPU 3 never returns",
    "hung_all": "no live call of any GPU returns",
    "hung_init": "nvmlInit never returns",
    "throttled": "GPU 1 slows down for heat, GPU 6 for the power brake",
    "hot": "GPU 1 slows down for heat",
    "narrow": "GPU 4 has half of its PCIe lanes and repeats transfers",
    "left_behind": "no GPU works, and a process holds half of the memory of GPU 3",
    "mig": "GPU 0 has two MIG instances, 3g.40gb and 1g.10gb",
    "mig_user": "as mig, asked by somebody who is told processes by instance only",
    "unsupported": "one Tesla M60 with an old driver: most calls are not supported",
    "nvlink5": "8 B200; link 7 of GPU 4 has a bad bit error rate",
    "no_permission": "nvmlInit is not permitted",
    "driver_not_loaded": "nvmlInit: driver not loaded",
    "library_mismatch": "nvmlInit: versions of library and driver differ",
    "init_failed": "nvmlInit: unknown error",
    "no_devices": "the driver works and has no GPU",
    "no_firmware": "GPU 2 answers live calls with an unknown error",
    "restricted": "counters are for the administrator only",
    "all_ones": "GPU 2 reads all ones as its power",
    "hidden_memory": "memory of processes is not told",
    "accounting": "processes are accounted for",
    "sram": "GPU 4 has exceeded the SRAM threshold",
    "inforom": "GPU 1 has a corrupt InfoROM",
    "reset_wanted": "the driver wants GPU 7 to be reset",
    "link_down": "link 9 of GPU 1 is down",
    "link_errors": "link 2 of GPU 0 replays",
    "no_bridge": "all links are down, as without a bridge",
    "no_fabric": "the fabric manager has not set the GPUs up",
    "slow": "each call takes 2 ms",
    "crash": "nvmlInit ends the process",
    "capped": "GPU 2 is at its power limit",
    "busy_nothing": "GPU 1 is in use all the time, its SMs are not",
    "sawtooth": "GPU 2 is full and empty by turns, an eighth of a second each",
    "neighbour": "GPU 3 is shared with process 7777",
    "swinging": "the SM clock of GPU 0 falls every other tenth of a second",
    "no_gpm": "8 GPUs of the Ampere generation: no GPM",
    "gpm_off": "the driver has no GPM",
    "hung_gpm": "nvmlGpmSampleGet of GPU 3 never returns",
}


@cache
def _built(tmp: Path) -> Path:
    out = tmp / "nvml" / NAME
    out.parent.mkdir(parents=True, exist_ok=True)
    argv = [
        component("cc"),
        "-shared",
        "-fPIC",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-o",
        str(out),
        str(SOURCE),
        "-ldl",
    ]
    subprocess.run(argv, check=True, timeout=120)
    return out


def library(tmp: Path) -> Path:
    """The compiled library, in a folder of its own below `tmp` (a session's directory: it is compiled once)."""
    return _built(tmp)


def folder(tmp: Path, scenario: str) -> Path:
    """A fresh directory for LD_LIBRARY_PATH whose library plays `scenario`; its tick starts at 1. ValueError for an unknown one."""
    if scenario not in SCENARIOS:
        raise ValueError(f"no scenario {scenario!r}")
    built = library(tmp)
    number = 0
    while True:
        place = tmp / "nvml" / f"{scenario}-{number}"
        try:
            place.mkdir()
            break
        except FileExistsError:
            number += 1
    shutil.copy(built, place / NAME)
    (place / "scenario").write_text(scenario + "\n")
    place.chmod(0o777)  # an ordinary user's process counts ticks here too
    return place


def environment(place: Path) -> dict[str, str]:
    """The environment of a child that finds the library in `place`."""
    return {**os.environ, "LD_LIBRARY_PATH": str(place)}


def collect(place: Path, *more: str, deadline: float = 10.0) -> str:
    """What the real collector prints in a process of its own."""
    argv = [sys.executable, "-I", "-B", str(COLLECTOR), "--deadline", str(deadline), *more]
    done = subprocess.run(argv, env=environment(place), capture_output=True, timeout=deadline + 5, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert not done.stderr, done.stderr.decode()
    return done.stdout.decode()
