"""The one place that runs commands: real processes, a real journal."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from assistant.actions.acting import RefusedError, act
from assistant.actions.order import Manner, Order, by_name, manner, missing, order
from assistant.actions.running import HALF, End, environment, run
from assistant.incidents.events import Hand
from assistant.journal import Journal
from assistant.store.location import StoreError
from knowledge.errors import UsageError
from knowledge.language import Text
from knowledge.runbook import Risk, all_runbooks, runbook

HAND = Hand("alice", "cli")


def command(*argv: str, **changes: object) -> Order:
    return replace(Order("thermal", "look", argv, "n1", Risk.SAFE, "none"), **changes)  # type: ignore[arg-type]


def living(group: int) -> list[int]:
    """Processes of a group that are no corpses."""
    out = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, of = path.read_text().rpartition(")")[2].split()[:3]
            out += [int(path.parent.name)] if int(of) == group and state not in "ZX" else []
    return out


@pytest.mark.process
def test_intent_before_and_result_after(tmp_path: Path) -> None:
    journal = Journal(f"sqlite:///{tmp_path}/h.db")
    acted = act(command("/bin/sh", "-c", "echo out; echo err >&2; exit 3"), HAND, journal, "incident-one")
    assert (acted.result.end, acted.result.exit_code, acted.unrecorded) == (End.EXITED, 3, None)
    assert acted.result.output == "out\nerr\n"
    intent, result = journal.of("incident-one")
    assert (intent.kind, result.kind) == ("intent", "result")
    assert intent.data["argv"] == ["/bin/sh", "-c", "echo out; echo err >&2; exit 3"]
    assert intent.data["what"] == "step:thermal/look"
    assert result.data["intent"] == intent.seq == acted.intent
    assert result.data["exit_code"] == 3
    assert result.data["digest"] == sha256(b"out\nerr\n").hexdigest()


@pytest.mark.parametrize("url", ["off", "folder"])
def test_without_an_intent_nothing_runs(tmp_path: Path, url: str) -> None:
    marker = tmp_path / "ran"
    place = "off" if url == "off" else f"sqlite:///{tmp_path}"  # a folder is no database
    with pytest.raises(StoreError):
        act(command("/usr/bin/touch", str(marker)), HAND, Journal(place), "one")
    assert not marker.exists()


def test_what_destroys_is_never_run(tmp_path: Path) -> None:
    marker, journal = tmp_path / "ran", Journal(f"sqlite:///{tmp_path}/h.db")
    with pytest.raises(RefusedError):
        act(command("/usr/bin/touch", str(marker), risk=Risk.DESTRUCTIVE), HAND, journal, "one")
    assert not marker.exists()
    assert journal.of("one") == ()


@pytest.mark.process
def test_a_deadline_ends_all_that_was_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"trap '' TERM; (trap '' TERM; echo $$ >> {pids}; sleep 600) & echo begun; sleep 600"
    result = run(["/bin/sh", "-c", script], 0.5)
    assert result.end is End.TIMEOUT
    assert result.output == "begun\n"
    assert living(int(pids.read_text().split()[0])) == []


@pytest.mark.process
def test_ctrl_c_ends_it_and_is_a_result(tmp_path: Path) -> None:
    script = (
        "import sys; from assistant.actions.acting import act; from assistant.journal import Journal; "
        "from assistant.incidents.events import Hand; from assistant.actions.order import Order; from knowledge.runbook import Risk; "
        f"a = act(Order('b', 's', ('/bin/sh', '-c', 'echo $$ > {tmp_path}/pid; sleep 60'), 'n1', Risk.SAFE, 'none'), Hand('a', 'cli'), "
        f"Journal('sqlite:///{tmp_path}/h.db'), 'one'); print(a.result.end)"
    )  # fmt: skip
    root = Path(__file__).parents[3]
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=root)
    pid = tmp_path / "pid"
    until = time.monotonic() + 60
    while not (pid.exists() and pid.read_text().strip()) and time.monotonic() < until:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=60)[0].strip() == "stopped"
    assert living(int(pid.read_text())) == []
    kinds = [(r.kind, r.data.get("end")) for r in Journal(f"sqlite:///{tmp_path}/h.db").of("one")]
    assert kinds == [("intent", None), ("result", "stopped")]


@pytest.mark.process
def test_much_output_keeps_its_head_and_its_tail() -> None:
    result = run([sys.executable, "-c", "print('A' * 100_000 + 'B' * 100_000)"], 30)
    assert result.size == 200_001
    assert result.output.startswith("A" * HALF + "\n[")
    assert result.output.endswith("B" * 1000 + "\n")
    assert "bytes left out" in result.output
    assert len(result.output) < 2 * HALF + 100


@pytest.mark.process
def test_no_shell_and_an_environment_of_its_own() -> None:
    assert run(["/bin/echo", "$HOME; id"], 10).output == "$HOME; id\n"
    seen = run(["/usr/bin/env"], 10).output
    assert "LC_ALL=C.UTF-8" in seen
    ours = environment({"LD_PRELOAD": "/x.so", "PATH": "/evil", "HOME": "/root"})
    assert "LD_PRELOAD" not in ours
    assert "/evil" not in ours["PATH"]


@pytest.mark.process
def test_what_is_not_there_is_a_result() -> None:
    result = run(["/no/such/program"], 10)
    assert (result.end, result.exit_code) == (End.NOT_STARTED, None)
    assert "No such file" in result.detail


def test_orders_are_made_of_steps_with_all_values() -> None:
    book = runbook("row-remap-pending")
    with pytest.raises(UsageError, match="gpu_pci"):
        order(book, book.step("reset"), {}, "n1")
    with pytest.raises(UsageError, match="by hand"):
        order(book, book.step("plan"), {}, "n1")
    made = order(book, book.step("reset"), {"gpu_pci": "0000:3b:00.0"}, "n1")
    assert made.argv == ("nvidia-smi", "--gpu-reset", "-i", "0000:3b:00.0")
    values: Mapping[str, str] = {"gpu_pci": "-i"}
    assert missing("nvidia-smi -i {gpu_pci}", values) == ("gpu_pci",)


def test_every_risk_has_its_manner() -> None:
    assert [manner(r) for r in Risk] == [Manner.YES, Manner.TYPED, Manner.SHOWN]
    local = {s.command for b in all_runbooks() for s in b.steps if s.command and not by_name(s.command)}
    assert any(c.startswith("nvidia-smi --gpu-reset") for c in local)
    assert all(not c.startswith(("kubectl cordon", "scontrol update")) for c in local)


def test_what_cannot_be_begun_is_not_run(tmp_path: Path) -> None:
    """The event of the incident comes between intent and run; without it the journal says that nothing was started."""
    marker, journal = tmp_path / "ran", Journal(f"sqlite:///{tmp_path}/h.db")
    told: list[int] = []

    def begun(intent: int) -> None:
        told.append(intent)
        raise StoreError(Text("no disk"))

    with pytest.raises(StoreError):
        act(command("/usr/bin/touch", str(marker)), HAND, journal, "one", begun=begun)
    assert not marker.exists()
    intent, result = journal.of("one")
    assert told == [intent.seq] == [result.data["intent"]]
    assert result.data["end"] == "not_started"
