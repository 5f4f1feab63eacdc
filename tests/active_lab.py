"""Machines for active tests: stand-ins of our own for nvidia-smi and the tools, which print outputs in the tools' formats.

`Lab` writes them into a folder that goes into PATH. What the stand-in of ``nvidia-smi`` lists are two files, so that a
job can come and go while a test runs. The outputs (tests/captures/active) are made by us in the formats of the tools.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tests.conftest import ROOT

CAPTURES = ROOT / "tests" / "captures" / "active"
NAME = "NVIDIA H100 80GB HBM3"
BUSES = (
    0x1A,
    0x3B,
    0x4C,
    0x5D,
    0x9A,
    0xBA,
    0xCA,
    0xDA,
)  # as in tests.nvml_lab: so NVML and the tools tell of the same GPUs

# The fields that the collector asks for, in the order and the words of ``nvidia-smi --help-query-gpu``.
_SMI = """#!/bin/sh
here="$(dirname "$0")/state"
if [ -e "$here/broken" ]; then echo "Unable to determine the device handle for GPU0000:18:00.0: Unknown Error"; exit 15; fi
if [ -e "$here/hangs" ]; then exec sleep 60; fi
case "$1" in
  *clocks_event_reasons*) if [ -e "$here/old" ]; then echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; exit 2; fi; cat "$here/gpus";;
  --query-gpu=*) cat "$here/gpus";;
  --query-compute-apps=*) cat "$here/apps";;
esac
"""


def uuid(index: int) -> str:
    """The UUID of a GPU of the lab."""
    return f"GPU-{index:08x}-1111-2222-3333-444444444444"


class Lab:
    """A node with GPUs and tools."""

    def __init__(self, folder: Path, gpus: int = 2) -> None:
        self.bin, self.state = folder / "bin", folder / "bin" / "state"
        self.state.mkdir(parents=True)
        self.rows = [self.row(n) for n in range(gpus)]
        self.write()
        self.apps()
        self.tool("nvidia-smi", _SMI)

    def row(self, index: int, **other: str) -> dict[str, str]:
        """An idle GPU, with `other` values."""
        row = {
            "index": str(index), "uuid": uuid(index), "pci": f"00000000:{BUSES[index]:02X}:00.0", "name": NAME, "util": "0",
            "used": "1", "total": "81559", "mig": "Disabled", "temp": "31", "power": "71.20", "sm": "345",
            "reasons": "0x0000000000000001",
        }  # fmt: skip
        return row | other

    def write(self) -> None:
        """The GPUs as they are now."""
        text = "".join(", ".join(row.values()) + "\n" for row in self.rows)
        self._put("gpus", text)

    def apps(self, *rows: tuple[int, int | str, str]) -> None:
        """Who computes: GPU, pid, name."""
        self._put("apps", "".join(f"{uuid(g)}, {pid}, {name}, 1024\n" for g, pid, name in rows))

    def flag(self, name: str, on: bool = True) -> None:
        """``broken``, ``hangs``, ``old``: what nvidia-smi is like."""
        (self.state / name).touch() if on else (self.state / name).unlink()

    def tool(self, name: str, script: str) -> Path:
        """An executable in PATH."""
        path = self.bin / name
        path.write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        return path

    def prints(self, name: str, capture: str, before: str = "", code: int = 0) -> None:
        """A tool that notes its words and environment, does `before`, prints a recorded output and ends."""
        self.tool(
            name,
            f'echo "$0 $@" >> {self.state}/called\nenv > {self.state}/env\n{before}\ncat {CAPTURES / capture}\nexit {code}',
        )

    @property
    def environ(self) -> dict[str, str]:
        """For a host or a process that finds the lab's tools."""
        return os.environ | {"PATH": f"{self.bin}:/usr/bin:/bin"}

    def called(self) -> list[str]:
        """The command lines that tools were run with."""
        path = self.state / "called"
        return path.read_text().splitlines() if path.exists() else []

    def _put(self, name: str, text: str) -> None:
        fresh = self.state / f".{name}"
        fresh.write_text(text)
        fresh.replace(self.state / name)
