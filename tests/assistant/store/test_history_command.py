"""``gpudiag history`` as a person runs it."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from assistant import store
from tests.assistant.store.history_lab import DAY, MINUTE, T0, Machine, check, plain, rules, seen, xid
from tests.conftest import Answer, Gpudiag


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A history of an hour: an XID that comes and goes, a counter that grows."""
    address = f"sqlite:///{tmp_path}/history.db"
    machine = Machine()
    for minute in range(0, 60, 5):
        machine.replay, machine.temperature = minute * 2, 40 + minute
        machine.more = [xid(79, T0)] if 20 <= minute < 40 else []
        check(address, machine, T0 + minute * MINUTE)
    return address


@pytest.fixture
def history(gpudiag: Gpudiag, url: str) -> Gpudiag:
    def run(*words: str, **more: object) -> Answer:
        return gpudiag("history", *words, env={"GPUDIAG_HISTORY_URL": url} | dict(more.pop("env", {})))  # type: ignore[call-overload]

    return run


def test_runs(history: Gpudiag) -> None:
    answer = history()
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert len([x for x in lines if "UNHEALTHY" in x]) == 4
    assert "GPU has fallen off the bus" in answer.out
    assert lines[3].split()[:3] == ["12", "2026-09-21", "15:08:20Z"]
    assert len(history("list", "--limit", "3").out.splitlines()) == 6
    assert "异常" in history("--lang", "zh").out


def test_runs_as_data(history: Gpudiag) -> None:
    sheet = json.loads(history("--format", "json").out)
    runs = sheet["runs"] if "runs" in sheet else sheet["data"]["runs"]
    assert [r["verdict"]["state"] for r in reversed(runs)] == ["ok"] * 4 + ["unhealthy"] * 4 + ["ok"] * 4
    assert {f["rule"] for r in runs for f in r["findings"]} >= {"gpu-fell-off-bus"}
    assert all(f["first_seen"] == "2026-09-21T14:33:20Z" for r in runs for f in r["findings"] if f["xid"] == 79)


def test_one_run(history: Gpudiag) -> None:
    assert "OK" in history("show").out
    answer = history("show", "5")
    assert answer.code == 0
    assert "RESTART" not in answer.out
    assert "CRITICAL" in answer.out
    assert "boot-1" in answer.out
    answer = history("show", "99")
    assert answer.code == 2
    assert "no run 99 is in the history" in answer.err


def test_a_fact(history: Gpudiag) -> None:
    answer = history("fact", "gpu.pcie.replay", "--since", "3650d")
    assert answer.code == 0
    assert "growth    110" in answer.out
    assert "per hour  120" in answer.out
    assert "▁" in answer.out
    assert "█" in answer.out
    data = json.loads(history("fact", "gpu.temperature.core", "--since", "3650d", "--format", "json").out)
    (line,) = data["series"] if "series" in data else data["data"]["series"]
    assert [s["value"] for s in line["samples"]] == [40, 50, 60, 70, 80, 90]
    assert line["trend_per_day"] == pytest.approx(24 * 60)
    limited = history("fact", "gpu.pcie.replay", "--since", "3650d", "--limit", "2").out
    assert "the newest 2 of 12 changes" in limited


def test_a_fact_about_one_subject(history: Gpudiag) -> None:
    for name in ("0000:3b:00.0", "00000000:3B:00.0", "node:n1/gpu:0000:3b:00.0", "n1"):
        assert history("fact", "gpu.vbios", "--since", "3650d", "--subject", name).code == 0
    answer = history("fact", "gpu.vbios", "--since", "3650d", "--subject", "0000:5e:00.0")
    assert answer.code == 2
    assert "no samples of gpu.vbios about 0000:5e:00.0" in answer.err


def test_asked_wrongly(history: Gpudiag) -> None:
    assert "did you mean gpu.pcie.replay" in history("fact", "gpu.pcie.repaly").err
    assert "no length of time" in history("fact", "gpu.vbios", "--since", "soon").err
    assert "no node in the history named 'x'" in history("list", "--host", "x").err
    assert history("list", "--limit", "0").code == 2


def test_several_nodes(history: Gpudiag, url: str) -> None:
    diagnosis = plain([seen("gpu.temperature.core", 40, T0)], T0)
    assert store.remember(url, "other", diagnosis, rules=rules().rules) is None
    assert "other" in history().out
    assert "other" not in history("list", "--host", "n1").out
    answer = history("fact", "gpu.temperature.core")
    assert answer.code == 2
    assert "which node? --host NAME" in answer.err
    assert "n1, other" in answer.err


def test_nothing_yet(gpudiag: Gpudiag, tmp_path: Path) -> None:
    answer = gpudiag("history", env={"XDG_DATA_HOME": str(tmp_path)})
    assert answer.code == 0
    said = " ".join(answer.out.split())  # where a line breaks depends on the length of the path
    assert f"No check is in the history yet ({tmp_path}/gpudiag/history.db)." in said
    assert "gpudiag check" in said, "how it is filled"
    assert not (tmp_path / "gpudiag").exists(), "reading makes nothing"
    assert gpudiag("history", env={"GPUDIAG_HISTORY_URL": "off"}).code == 2


def test_damaged(history: Gpudiag, url: str) -> None:
    path = Path(url.removeprefix("sqlite:///"))
    path.write_bytes(os.urandom(5000))
    answer = history()
    assert (answer.code, answer.out) == (2, "")
    assert "cannot be read: the file is no database" in answer.err


def test_prune(history: Gpudiag, url: str) -> None:
    path = Path(url.removeprefix("sqlite:///"))
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE run SET as_of = as_of - {400 * DAY} WHERE id < 12")
    connection.execute(f"UPDATE event SET last_seen = last_seen - {400 * DAY}")
    connection.execute(f"UPDATE observation SET at = at - {400 * DAY}, holds_from = holds_from - {400 * DAY}")
    # Checks every ten days since, so that no jump of a clock could have made those old; of them the newest 32 stay.
    columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(run)") if name not in ("id", "as_of")]
    for days in range(600, 0, -10):
        names = ", ".join(columns)
        connection.execute(
            f"INSERT INTO run (as_of, {names}) SELECT as_of - {days * DAY}, {names} FROM run WHERE id = 12"
        )
    connection.commit()
    connection.close()
    answer = history("prune", "--format", "json")
    assert answer.code == 0
    data = json.loads(answer.out)
    removed = data["removed"] if "removed" in data else data["data"]["removed"]
    assert removed["run"] == 11 + 60 - 32
    assert removed["event"] == 1
    assert removed["observation"] > 0
    assert "12" in history().out


@pytest.mark.process
def test_reading_is_light(clean_environment: dict[str, str], url: str) -> None:
    import subprocess
    import sys

    program = (
        "import sys\nfrom assistant.cli import main\ncode = main(sys.argv[1:])\n"
        "print(*{m.split('.')[0] for m in sys.modules}, file=sys.stderr)\nsys.exit(code)"
    )
    for words in (("history",), ("history", "fact", "gpu.vbios", "--since", "3650d")):
        done = subprocess.run(
            [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True,
            env=clean_environment | {"GPUDIAG_HISTORY_URL": url},
        )  # fmt: skip
        assert not set(done.stderr.split()) & {
            "sqlalchemy",
            "sqlmodel",
            "pydantic",
            "alembic",
            "numpy",
            "rich",
            "yaml",
            "platformdirs",
        }


@pytest.mark.parametrize("every", [10 * MINUTE, MINUTE], ids=["ten minutes", "a minute"])
def test_what_gpus_did_stands_busy_beside_working(gpudiag: Gpudiag, tmp_path: Path, every: int) -> None:
    """At any pace of looks: one that found another load counts like the others."""
    address, machine = f"sqlite:///{tmp_path}/history.db", Machine()
    for look in range(4):
        at = T0 + look * every
        sm = 7.0 if look == 3 else 91.0
        told = {
            "gpu.utilization.core": 99,
            "gpu.activity.sm": sm,
            "gpu.activity.tensor": 52.0 * (look < 3),
            "gpu.power.draw": 650.0 if look < 3 else 130.0,
            "gpu.power.limit": 700.0,
        }
        machine.more = [seen(fact, value, at) for fact, value in told.items()]
        check(address, machine, at)
    answer = gpudiag("history", "work", "--since", "3650d", "--format", "json", env={"GPUDIAG_HISTORY_URL": address})
    (work,) = json.loads(answer.out)["gpus"]
    assert (work["looks"], work["busy"], work["working"]) == (4, 99, 70)
    assert (work["tensor"], work["dram"], work["power"], work["power_limit"]) == (39, None, 520, 700)
    assert work["classes"] == {"tensor_bound": 75, "busy_idle": 25}
    table = gpudiag("history", "work", "--since", "3650d", env={"GPUDIAG_HISTORY_URL": address}).out
    assert "520/700 W" in table
    assert "DRAM" not in table, "nobody read it"
    none = gpudiag("history", "work", "--since", "1h", env={"GPUDIAG_HISTORY_URL": address})
    assert (none.code, none.out) == (2, "")
    assert "nobody read how busy" in none.err
