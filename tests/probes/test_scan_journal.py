"""Journal files of systemd in the scanner: read by journalctl where it is, exported by hand where it is not."""

from __future__ import annotations

import gzip
import io
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from knowledge.observation import Event
from probes.base import Context
from probes.parse import kernel_log
from probes.scan import ScanResult, scan

pytestmark = pytest.mark.process

BOOT = "a" * 32
LINES = (
    "Linux version 6.5.0",
    "NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python, GPU has fallen off the bus.",
    "two\nlines of one message",
)


def read(item: Path | io.BytesIO) -> ScanResult:
    return scan([item], (kernel_log.FORMAT,), Context)


def codes(result: ScanResult) -> list[object]:
    return [o.value.code for o in result.observations if o.fact == "xid" and isinstance(o.value, Event)]


@pytest.fixture
def journal(tmp_path: Path, require: Callable[[str], str]) -> Path:
    """A journal file with `LINES`."""
    remote = require("journal-remote")
    export = bytearray()
    for n, line in enumerate(LINES, 1):
        fields = {
            "__REALTIME_TIMESTAMP": str(1_764_200_000_000_000 + n),
            "__MONOTONIC_TIMESTAMP": str(n),
            "_BOOT_ID": BOOT,
            "_TRANSPORT": "kernel",
            "SYSLOG_IDENTIFIER": "kernel",
            "_HOSTNAME": "gpu01",
        }
        export += "".join(f"{k}={v}\n" for k, v in fields.items()).encode()
        export += b"MESSAGE\n" + len(line).to_bytes(8, "little") + line.encode() + b"\n\n"
    (tmp_path / "export").write_bytes(export)
    made = tmp_path / "system.journal"
    subprocess.run([remote, "-o", made, tmp_path / "export"], check=True, capture_output=True, timeout=60)
    return made


def test_a_journal_tells_what_its_text_tells(journal: Path, require: Callable[[str], str]) -> None:
    require("journalctl")
    from_file, from_stream = read(journal), read(io.BytesIO(journal.read_bytes()))
    assert codes(from_file) == codes(from_stream) == [79]
    assert {o.subject.host for o in from_file.observations if o.fact == "xid"} == {"gpu01"}
    assert not any(n.problem for n in (*from_file.notes, *from_stream.notes))


@pytest.mark.parametrize("size", [64, 3000])
def test_a_journal_that_is_cut_is_told(size: int, journal: Path, require: Callable[[str], str]) -> None:
    require("journalctl")
    result = read(io.BytesIO(journal.read_bytes()[:size]))
    assert any(n.problem and "journalctl cannot read all of it" in n.text.en for n in result.notes)


def test_without_journalctl_the_command_is_named(
    journal: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert any(f"journalctl --file {journal}" in n.text.en for n in read(journal).notes)


def test_a_journalctl_that_cannot_be_run_is_told(
    journal: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "journalctl"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert any(n.problem and "journalctl cannot be asked" in n.text.en for n in read(journal).notes)


def test_a_packed_journal_is_read_as_one_or_its_command_names_no_packed_file(
    require: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A damaged one is enough to see who was asked."""
    require("journalctl")
    packed = gzip.compress(b"LPKSHHRH" + bytes(300))
    assert any(n.problem and "journalctl cannot read all of it" in n.text.en for n in read(io.BytesIO(packed)).notes)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "system.journal.gz").write_bytes(packed)
    (note,) = read(tmp_path / "system.journal.gz").notes
    assert "journalctl --file FILE" in note.text.en
    assert "unpacked file" in note.text.en
