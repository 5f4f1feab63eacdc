"""Inputs that are missing, cut or mixed: the rest is answered, and nobody is told that all is well."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from probes import registry
from tests.assistant.stories import DBE, QUIET, write
from tests.cases import each
from tests.conftest import Gpudiag

BUS_LOSS = Path(__file__).parents[1] / "captures" / "logs" / "syslog-bus-loss.log"
ERROR = "Unable to determine the device handle for GPU 0000:C1:00.0: GPU is lost.  Reboot the system\n"


def test_an_error_sentence_in_a_log_does_not_make_it_a_document(gpudiag: Gpudiag) -> None:
    as_log, as_input, bare = (
        json.loads(gpudiag("check", *words, str(BUS_LOSS), "--format", "json").out)["events"]
        for words in (("--log",), ("--input",), ())
    )
    assert as_log == as_input == bare
    assert {79, 154, 119} <= {e["code"] for e in as_log}


@pytest.mark.parametrize("before", [True, False])
def test_a_sentence_between_log_lines_is_none_either(before: bool) -> None:
    found = registry.sniff(ERROR + DBE if before else DBE + ERROR)
    assert found is not None
    assert found.name == "kernel-log"
    alone = registry.sniff(ERROR)
    assert alone is not None
    assert alone.name == "nvidia-smi"


def test_a_document_keeps_its_headline_beside_log_lines() -> None:
    smi = (Path(__file__).parents[2] / "assistant/demos/power-brake/nvidia-smi-q.txt").read_text(encoding="utf-8")
    found = registry.sniff(smi + DBE)
    assert found is not None
    assert found.name == "nvidia-smi-q"


@pytest.mark.parametrize("option", ["--log", "--input"])
@pytest.mark.parametrize("kind", ["gz", "zst", "zst-head"])
def test_nothing_found_in_a_cut_input_is_unknown(gpudiag: Gpudiag, tmp_path: Path, option: str, kind: str) -> None:
    text = (QUIET + "".join(f"[{i}.000000] usb 1-1: reset {i * 7919 % 997}\n" for i in range(1000, 9000))).encode()
    packed = gzip.compress(text) if kind == "gz" else zstandard.ZstdCompressor().compress(text)
    path = tmp_path / f"kern.log.{kind[:3]}"
    path.write_bytes(packed[:20] if kind == "zst-head" else packed[: len(packed) * 3 // 4])
    answer = gpudiag("check", option, str(path))
    assert answer.code == 3
    assert answer.out.startswith("UNKNOWN  ")
    assert "cut off" in " ".join(answer.out.split())  # a long path breaks the line
    assert "empty" not in answer.out
    monitored = gpudiag("check", option, str(path), "--nagios")
    assert (monitored.code, monitored.out[:17]) == (3, "GPUDIAG UNKNOWN -")


def test_a_report_that_stops_is_cut(gpudiag: Gpudiag, tmp_path: Path) -> None:
    report = (Path(__file__).parents[2] / "assistant/demos/power-brake/nvidia-smi-q.txt").read_text(encoding="utf-8")
    second = report.rindex("\nGPU 0")
    answer = gpudiag("check", write(tmp_path, "smi.txt", report[: second + 1]), "--format", "json")
    assert any("cut off" in note for note in json.loads(answer.out)["notes"])
    whole = gpudiag("check", write(tmp_path, "whole.txt", report), "--format", "json")
    assert not any("cut off" in note for note in json.loads(whole.out)["notes"])
    first, end = report.index("\nGPU 0"), report.index("\nGPU 0", report.index("\nGPU 0") + 1)
    for text, fits in ((report[:end], True), (report[: (first + end) // 2], False)):  # nvidia-smi -q -i 0
        alone = gpudiag("check", write(tmp_path, "one.txt", text), "--format", "json")
        assert any("cut off" in note for note in json.loads(alone.out)["notes"]) is not fits


@pytest.mark.parametrize("option", ["--log", "--input"])
def test_one_missing_file_costs_only_itself(gpudiag: Gpudiag, tmp_path: Path, option: str) -> None:
    absent = str(tmp_path / "absent.log")
    sick = gpudiag("check", option, absent, write(tmp_path, "kern.log", DBE), str(tmp_path), "--format", "json")
    assert sick.code == 1
    data = json.loads(sick.out)
    assert [e["code"] for e in data["events"]] == [48, 63, 94, 45, 45]
    assert any(n.startswith(absent) and "was not read: no such file" in n for n in data["notes"])
    assert any("is a directory" in n for n in data["notes"])
    quiet = gpudiag("check", option, write(tmp_path, "quiet.log", QUIET), absent)
    assert quiet.code == 3
    assert gpudiag("check", option, absent).code == 2


def test_files_need_no_flag(gpudiag: Gpudiag, tmp_path: Path) -> None:
    log, other = write(tmp_path, "kern.log", DBE), write(tmp_path, "quiet.log", QUIET)
    for words in (
        (log, other),
        ("--host", "a", log, other),
        (log, "--host", "a", other),
        ("--log", other, "--host", "a", log),
    ):
        data = json.loads(gpudiag("check", *words, "--format", "json").out)
        assert [e["code"] for e in data["events"] if e["kind"] == "xid"] == [48, 63, 94, 45, 45]
    piped = json.loads(gpudiag("check", "-", "--format", "json", stdin=DBE.encode()).out)
    assert [e["code"] for e in piped["events"]] == [48, 63, 94, 45, 45]


@pytest.mark.process
@each("command", ["explain xid 79", "rules list", "--version"])
@each(("where", "why"), [(">/dev/full", "No space left on device"), (">&-", "standard output is closed")])
def test_an_answer_that_cannot_be_written(
    clean_environment: dict[str, str], command: str, where: str, why: str
) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m assistant {command} {where}"],
        capture_output=True, text=True, check=False, env=clean_environment, cwd=clean_environment["PYTHONPATH"],
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == f"gpudiag: cannot write the answer: {why}\n"


@pytest.mark.parametrize("numbers", [3, 14])  # a line that names more than a dozen things is of no one
def test_a_log_of_which_lines_were_only_counted_is_unknown_and_its_twin_is_fine(
    gpudiag: Gpudiag, tmp_path: Path, numbers: int
) -> None:
    path = tmp_path / "syslog"
    units = (f"backup{i % 4200}.service" + "".join(f" {(i * k) % 7}" for k in range(numbers)) for i in range(4700))
    lines = (
        f"Nov 21 {i // 3600:02d}:{i // 60 % 60:02d}:{i % 60:02d} n1 systemd[1]: Failed to start {u}.\n"
        for i, u in enumerate(units)
    )
    path.write_text(QUIET + "".join(lines))
    answer = gpudiag("check", "--log", str(path), "--format", "json")
    told = json.loads(answer.out)
    assert told["verdict"]["state"] == ("unknown" if numbers > 12 else "ok")
    assert any("were only counted" in note for note in told["notes"]) is (numbers > 12)
    assert (told["coverage"]["failed"] != []) is (numbers > 12)


LISTED = "GPU 0: NVIDIA L40S (UUID: GPU-6f0a1b2c-0000-4000-8000-000000000001)\n"
TABLE = (BUS_LOSS.parents[1] / "smi" / "table-590-mig.txt").read_text()


@each(
    ("text", "why"),
    [
        (f"$ nvidia-smi -L\n{LISTED}$ frobctl --status\n retimer 3 : 0x8841\n", "what `frobctl --status` printed is not read (line 4)"),
        (f"{LISTED}$ frobctl --status\n retimer 3 : 0x8841\n", "what `frobctl --status` printed is not read (line 3)"),
        (f"{TABLE}\nSLOT  STATE  RETIMER\n 1    FAULT  NO-LINK\n", "no known layout, and tells of trouble: 1    FAULT  NO-LINK"),
        (f"{TABLE}\nSLOT  STATE  RETIMER\n 1    GOOD   OK\n", ""),
        (f"$ whoami\nroot\n$ nvidia-smi -L\n{LISTED}", ""),
    ],
)  # fmt: skip
def test_what_nobody_reads_beside_an_output_is_no_ok(gpudiag: Gpudiag, tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "paste.txt"
    path.write_text(text)
    said = json.loads(gpudiag("check", str(path), "--format", "json").out)
    lost = [note for note in said["notes"] if "not read" in note or "known layout" in note]
    assert len(lost) == bool(why)
    assert all(why in note for note in lost)
    assert not (why and said["verdict"]["state"] == "ok")
