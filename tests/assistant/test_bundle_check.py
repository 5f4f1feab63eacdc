"""``check --bundle``: a recorded machine is diagnosed like the files that were recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import assistant
from assistant import machine
from assistant.cli import main
from knowledge.observation import Clock, Observation, Source, gpu
from knowledge.observation_json import plain
from probes.bundle import write
from probes.host import CallKind, Reply

DEMO = Path(assistant.__file__).parent / "demos" / "double-bit-error"
SMI = ("nvidia-smi", "-q")
KERNEL = ("journalctl", "-k", "-o", "short-iso", "--no-pager")


def bundle(folder: Path, *replies: Reply) -> Path:
    path = folder / "node.tar.gz"
    write(path, "ash-a100-17", replies, 1_741_230_900 * 10**9, "0.1.0")
    return path


def ran(argv: tuple[str, ...], file: str) -> Reply:
    return Reply(CallKind.COMMAND, argv, data=(DEMO / file).read_bytes(), exit_code=0)


def test_a_recorded_machine_gives_the_root_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = bundle(tmp_path, ran(SMI, "nvidia-smi-q.txt"), ran(KERNEL, "kern.log"))
    assert main(["check", "--bundle", str(path), "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    roots = [f for f in found["findings"] if f["role"] == "root"]
    assert [(f["rule"], f["action"]["bucket"]) for f in roots] == [("uncorrectable-ecc", "DRAIN_AND_RESET")]
    assert roots[0]["subject"]["host"] == "ash-a100-17"
    assert found["as_of"].startswith("2025-03-06T03:15:00")


def test_what_was_not_recorded_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = bundle(tmp_path, ran(SMI, "nvidia-smi-q.txt"))
    main(["check", "--bundle", str(path), "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    assert any("kernel" in note for note in found["notes"])


def test_a_file_that_is_no_bundle_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.tar.gz"
    path.write_bytes(b"not an archive")
    assert main(["check", "--bundle", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert str(path) in said.err
    assert "Traceback" not in said.err


def test_earlier_samples_of_facts_of_another_version_are_told_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = Observation("gpu.pcie.replay", gpu("0000:3b:00.0", "n1"), 0, source=Source("nvml", "history: 1 sample"), at=1)
    lines = [json.dumps(plain(replace(one, fact=name))) for name in ("widget.fault", "gpu.pcie.replay", "widget.worn")]
    path = tmp_path / "node.tar.gz"
    write(path, "n1", [], 2, "0.1.0", extra={"history.jsonl": "\n".join(lines).encode()})
    assert main(["check", "--no-history", "--bundle", str(path)]) == 3
    said = capsys.readouterr()
    assert "facts that this version does not know: widget.fault, widget.worn" in " ".join(said.out.split())
    assert "bug" not in said.err
    _, look = machine.bundle(str(path))
    assert [o.fact for o in look.earlier] == ["gpu.pcie.replay"]


@pytest.mark.parametrize("call", ["history: 2 samples since 2026-01-01", "/proc/meminfo"])
def test_history_alone_settles_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str], call: str) -> None:
    sample = Observation(
        "gpu.pcie.replay", gpu("0000:3b:00.0", "n1"), 0, source=Source("nvml", call), at=1, clock=Clock.REALTIME
    )
    path = tmp_path / "node.tar.gz"
    write(path, "n1", [], 2, "0.1.0", extra={"history.jsonl": json.dumps(plain(sample)).encode() + b"\n"})
    code = main(["check", "--bundle", str(path)])
    said = capsys.readouterr()
    if call.startswith("history:"):
        assert code == 3, said.out
        assert "OK" not in said.out
    else:
        assert code == 2
        assert "no sample of an earlier check" in said.err
