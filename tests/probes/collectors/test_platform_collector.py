"""The `platform` collector as a process, on trees and on this machine, with its parser behind it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from knowledge.observation import Scope, Status, Subject, node
from probes.parse.platform_snapshot import FORMAT
from tests.probes.collectors.collecting import FOLDER, collect, document, read, told
from tests.probes.collectors.sysfs_tree import block
from tests.probes.live.machine import tree
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

pytestmark = pytest.mark.process

HERE = node("gpu-1")
MACHINE = {
    "/proc/sys/kernel/hostname": "gpu-9\n", "/proc/sys/kernel/random/boot_id": "b\n", "/proc/meminfo": "MemTotal: 1048576 kB\nMemFree: 1 kB\n",
    "/sys/devices/system/edac/mc/mc0/mc_name": "amd\n", "/sys/devices/system/edac/mc/mc0/ce_count": "7\n",
    "/sys/devices/system/edac/mc/mc0/ue_count": "0\n", "/sys/devices/system/edac/mc/mc0/rank3/dimm_label": "P0 A\n",
    "/sys/devices/system/edac/mc/mc0/rank3/dimm_ce_count": "7\n", "/sys/devices/system/cpu/cpu0/microcode/version": "0x1\n",
    "/sys/devices/system/cpu/cpu11/microcode/version": "0x1\n", "/sys/devices/system/cpu/cpufreq/none": "",
    "/sys/devices/system/node/node0/cpulist": "0-11\n", "/sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:  1048576 kB\nNode 0 MemFree: 1 kB\n",
    "/sys/class/nvme/nvme0/model": "ACME   \n", "/sys/class/nvme/nvme0/serial": "SECRET\n", "/sys/class/nvme/nvme0/state": "live\n",
    "/sys/block/sda/device/model": "DISK\n", "/sys/block/sda/device/state": "offline\n", "/sys/block/md127/md/level": "raid1\n",
    "/sys/block/md127/md/degraded": "1\n", "/sys/class/hwmon/hwmon4/name": "coretemp\n", "/sys/class/hwmon/hwmon4/temp1_input": "45000\n",
    "/sys/class/hwmon/hwmon4/temp1_label": "Package id 0\n", "/sys/class/hwmon/hwmon4/temp1_crit": "100000\n",
    "/sys/class/hwmon/hwmon4/fan1_input": "900\n", "/sys/class/hwmon/hwmon5/name": "power_meter\n",
    "/sys/class/hwmon/hwmon5/temp1_input": "1\n", "/sys/fs/pstore/dmesg-efi-17": "panic", "/sys/fs/pstore/console-ramoops-0": "x",
}  # fmt: skip


def test_a_machine_is_read_as_it_is(tmp_path: Path) -> None:
    text = collect("platform", tree(tmp_path, MACHINE))
    found = read(FORMAT, text)
    assert_in_vocabulary(found, FORMAT)
    got = told(found)
    assert document(text)["host"] == "gpu-9"
    assert got["node.memory.errors.corrected", HERE] == 7
    assert got["dimm.errors.corrected", Subject(Scope.OBJECT, "P0 A (mc0 rank3)", HERE)] == 7
    assert (got["node.cpu.microcode", HERE], got["node.numa.with_cpus", HERE], got["drive.count", HERE]) == (
        ("0x1",),
        1,
        2,
    )
    assert got["drive.state", Subject(Scope.OBJECT, "sda", HERE)] == "offline"
    assert got["raid.members.missing", Subject(Scope.OBJECT, "md127", HERE)] == 1
    assert got["sensor.temperature.margin", Subject(Scope.OBJECT, "coretemp Package id 0", HERE)] == 55.0
    assert got["node.crash.records", HERE] == 1
    for secret in ("SECRET", "panic", "power_meter/", "hwmon5/temp1"):
        assert secret not in text


def test_an_empty_machine_and_this_one(tmp_path: Path) -> None:
    assert document(collect("platform", tmp_path))["files"] == {}
    here = collect("platform", None)
    assert_in_vocabulary(read(FORMAT, here), FORMAT)
    assert len(here) < 300_000


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_without_rights_it_says_what_it_may_not_read(tmp_path: Path) -> None:
    root = tree(tmp_path, MACHINE)
    for folder in (tmp_path, *tmp_path.parents):
        folder.chmod(folder.stat().st_mode | 0o055)
    (root / "sys/devices/system/edac/mc").chmod(0o700)
    got = told(read(FORMAT, collect("platform", root, uid=65534)))
    assert got["node.memory.errors.controllers", HERE] is Status.DENIED


def test_a_sensor_that_hangs_costs_only_the_sensors_behind_it(tmp_path: Path) -> None:
    root = tree(tmp_path, MACHINE)
    block(root / "sys/class/hwmon/hwmon4/temp1_input")
    text = collect("platform", root, deadline=3)
    assert document(text)["hung"] == "/sys/class/hwmon/hwmon4/temp1_input"
    got = told(read(FORMAT, text))
    assert got["node.numa.with_cpus", HERE] is Status.TIMEOUT
    assert got["drive.state", Subject(Scope.OBJECT, "nvme0", HERE)] == "live"


def test_it_is_called_as_it_says() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-B", str(FOLDER / "platform.py"), "--what", "x"], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")


def test_the_oldest_python_prints_the_same(tmp_path: Path) -> None:
    named = (path for v in range(8, 11) if (path := shutil.which(f"python3.{v}")))
    oldest = next(
        (p for p in named if not subprocess.run([p, "-c", ""], capture_output=True, check=False).returncode), None
    )
    if oldest is None:
        pytest.skip("no older Python here")
    root = tree(tmp_path, MACHINE)
    argv = [oldest, "-I", "-B", str(FOLDER / "platform.py"), "--root", str(root)]
    old = subprocess.run(argv, capture_output=True, check=True).stdout
    assert json.loads(old)["files"] == document(collect("platform", root))["files"]
