"""`gpudiag doctor`: what is in the way is named with the command that mends it; what is not there is no fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assistant import doctor
from knowledge.errors import UndeclaredFactError
from knowledge.language import Text
from knowledge.observation import Observation, Source, Status, node
from probes.host import Host
from probes.live import Needs, ProbeRequest, ProbeSpec
from probes.runner import ProbeResult
from rules.loader import load
from tests.conftest import Gpudiag


def spec(name: str, *provides: str, binaries: tuple[str, ...] = ()) -> ProbeSpec:
    def collect(request: ProbeRequest, host: Host) -> list[Observation]:
        return []

    return ProbeSpec(name, Text(name, name), provides, provides[:1], collect, Needs(binaries))


def result(name: str, status: Status, detail: str = "", *observations: Observation) -> ProbeResult:
    return ProbeResult(name, observations, status, detail)


def test_a_real_machine_is_told_whole(gpudiag: Gpudiag) -> None:
    answer = gpudiag("doctor", "--format", "json")
    found = json.loads(answer.out)
    assert answer.code == (0 if found["ok"] else 1)
    assert {r["name"] for r in found["probes"]} >= {"kernel-log", "nvml", "pci", "system"}
    assert all(r["says"] for part in ("installation", "rights", "probes") for r in found[part])
    assert "Traceback" not in answer.err


def test_a_missing_tool_says_how_to_get_it_and_what_it_costs() -> None:
    (row,) = doctor.sources(
        [result("nvidia-smi", Status.UNSUPPORTED, "nvidia-smi is not installed")],
        [spec("nvidia-smi", "gpu.row_remap.failure", binaries=("nvidia-smi",))],
        load().rules,
    )
    assert row.ok is None
    assert "NVIDIA driver" in row.fix.en
    assert row.rules >= 1


def test_denied_is_a_fault_with_a_command() -> None:
    (row,) = doctor.sources(
        [result("kernel-log", Status.DENIED, "needs CAP_SYSLOG")], [spec("kernel-log", "xid")], load().rules
    )
    assert (row.ok, row.fix.en) == (False, "sudo gpudiag check")
    assert doctor.Checkup((), (), (row,)).broken


def test_answers_in_part() -> None:
    seen = Observation("node.gpu.count", node("n"), 8, source=Source("x"))
    hidden = Observation("node.gpu.listed", node("n"), None, Status.DENIED, Source("x"), detail="only root")
    (row,) = doctor.sources([result("nvml", Status.OK, "", seen, hidden)], [spec("nvml", "node.gpu.count")], ())
    assert row.ok is None
    assert "only root" in row.says.en
    assert not doctor.Checkup((), (), (row,)).broken


def test_a_fact_that_does_not_exist_is_not_counted() -> None:
    seen = Observation("node.gpu.cuont", node("n"), 8, source=Source("nvml"))
    with pytest.raises(UndeclaredFactError, match=r"nvml tells .node\.gpu\.cuont.*nearest is .node\.gpu\.count"):
        doctor.sources([result("nvml", Status.OK, "", seen)], [spec("nvml", "node.gpu.count")], ())


def proc(
    folder: Path, caps: int, restrict: int, yama: int | None = 1, mounts: str = "proc /proc proc rw 0 0\n"
) -> Path:
    for path, text in (
        ("self/status", f"Name:\tx\nCapEff:\t{caps:016x}\n"), ("sys/kernel/dmesg_restrict", f"{restrict}\n"),
        ("sys/kernel/yama/ptrace_scope", "" if yama is None else f"{yama}\n"), ("mounts", mounts),
    ):  # fmt: skip
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def test_rights_of_an_ordinary_user(tmp_path: Path) -> None:
    rows = doctor.rights(proc(tmp_path, 0, 1), euid=1000)
    by = {r.name: r for r in rows}
    assert by["kernel log"].ok is False
    assert "systemd-journal" in by["kernel log"].fix.en
    assert "uid 1000" in by["user"].says.en


def test_rights_with_one_capability(tmp_path: Path) -> None:
    rows = doctor.rights(proc(tmp_path, 1 << 34, 1, None), euid=1000)
    assert "kernel log" not in {r.name for r in rows}
    assert "CAP_SYSLOG" in rows[0].says.en


def test_hidden_processes(tmp_path: Path) -> None:
    rows = doctor.rights(proc(tmp_path, 0, 0, None, "proc /proc proc rw,hidepid=2 0 0\n"), euid=1000)
    assert any(r.name == "other processes" and r.ok is False for r in rows)


def test_rights_where_nothing_can_be_read(tmp_path: Path) -> None:
    assert doctor.rights(tmp_path / "none", euid=0)[0].name == "user"


def test_a_stranger_that_took_a_package_name_is_named(tmp_path: Path) -> None:
    other = tmp_path / "site/rules"
    other.mkdir(parents=True)
    assert doctor.strangers({"rules": [str(other)]}) == [("rules", str(other.parent))]
    assert doctor.strangers({"rules": [str(Path(doctor.__file__).parent.parent / "rules")]}) == []


def test_a_state_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    rows = {r.name: r for r in doctor.installation(tmp_path / "fine")}
    assert rows["state"].ok is True
    problem = ("rules", Text("site.yaml:3:1: no such rule"), Text("gpudiag rules lint"))
    assert {r.name: r for r in doctor.installation(tmp_path, [problem])}["rules"].ok is False


def test_what_cannot_be_answered_here_is_counted() -> None:
    """A machine without a GPU answers few of the rules, and says so first; with one, what was read counts."""

    def saw(name: str, value: object) -> Observation:
        return Observation(name, node("n1"), value, source=Source(name, "f", 1))  # type: ignore[arg-type]

    specs = [
        spec("pci", "node.pci.gpu_count"),
        spec("nvml", "gpu.retired_pages.pending", "gpu.inforom.valid"),
        spec("kernel-log", "xid"),
    ]
    bare = [
        result("pci", Status.OK, "", saw("node.pci.gpu_count", 0)),
        result("nvml", Status.UNSUPPORTED, "no driver"),
        result("kernel-log", Status.OK),
    ]
    here = doctor.reach(bare, specs, load().rules)
    assert here.no_gpu
    assert 0 < here.lost < here.rules, "the kernel log answers for the lines that are not in it"
    full = doctor.reach(
        [result("pci", Status.OK, "", saw("node.pci.gpu_count", 8)),
         result("nvml", Status.OK, "", saw("gpu.retired_pages.pending", False), saw("gpu.inforom.valid", True)), result("kernel-log", Status.OK)],
        specs, load().rules,
    )  # fmt: skip
    assert (full.rules, full.lost, full.no_gpu) == (here.rules, 0, False)
