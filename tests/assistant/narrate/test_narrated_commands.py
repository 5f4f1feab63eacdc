"""``--narrate`` from the shell: the answer first, the exit code as without it, and Ctrl-C ends only the wait."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from assistant.narrate.asks import Retold
from assistant.render import narration as render
from tests.conftest import ROOT, Gpudiag
from tests.llm_lab import Model, llm_python, serving, stand_in_python

BUS = ("--bundle", str(ROOT / "assistant/demos/off-the-bus/bundle"))
TRUE = json.dumps({"sentences": [{"text": "{gpu_1} has fallen off the bus.", "cites": ["f1"]}]})
SAID = "GPU 5 (0000:ba:00.0) has fallen off the bus."
SLOTS = json.dumps({"intent": "explain", "slots": {"xid": ["79"]}})
DEAD = "http://127.0.0.1:9/v1"


@pytest.fixture(scope="module")
def server() -> Iterator[Model]:
    with serving() as model:
        yield model


def environment(folder: Path, base: str, python: str) -> dict[str, str]:
    return {
        "GPUDIAG_STATE_DIR": str(folder), "GPUDIAG_LLM_MODEL": "openai/m", "GPUDIAG_LLM_BASE": base, "GPUDIAG_LLM_PYTHON": python,
        "GPUDIAG_LLM_DEADLINE": "60", "GPUDIAG_HISTORY_URL": f"sqlite:///{folder}/history.db",
    }  # fmt: skip


def test_check_says_it_below(gpudiag: Gpudiag, server: Model, tmp_path: Path) -> None:
    """With the real litellm, from the command to the server."""
    server.mode, server.text = "ok", TRUE
    env = environment(tmp_path, server.base, llm_python())
    off, on = gpudiag("check", *BUS, env=env), gpudiag("check", *BUS, "--narrate", env=env)
    assert (on.code, on.err) == (off.code, off.err) == (1, "")
    added = on.out.removeprefix(off.out)
    assert added == f"\nIn short (put together by openai/m; verdict and actions are above):\n\n{SAID}\n"


def test_a_model_that_is_down_changes_no_command(gpudiag: Gpudiag, tmp_path: Path) -> None:
    env = environment(tmp_path, DEAD, "/none/python")
    for words in (("check", *BUS), ("ask", "--new", *BUS, "is this node healthy?"), ("ask", "--new", "what is xid 79?"),
                  ("ask", "--new", *BUS, "zork flum 79")):  # fmt: skip
        off, on = gpudiag(*words, env=env), gpudiag(*words, "--narrate", env=env)
        assert (on.code, on.out) == (off.code, off.out)
        assert on.err == f"{off.err}gpudiag: narration withheld: The model cannot be reached.\n"
        assert gpudiag(*words, "--narrate", "--quiet", env=env).err == ""


def test_a_sentence_that_nobody_understood_is_only_asked_about(gpudiag: Gpudiag, server: Model, tmp_path: Path) -> None:
    server.mode, server.text = "ok", SLOTS
    env = environment(tmp_path, server.base, stand_in_python())
    off = gpudiag("ask", "--new", "zork flum 79", env=env)
    on = gpudiag("ask", "--new", "zork flum 79", "--narrate", env=env, stdin="y\n")  # nobody sits there
    assert (on.code, on.out) == (off.code, off.out)
    assert on.err.startswith(off.err)
    assert on.err.removeprefix(off.err).startswith("gpudiag: Did you mean: ")


def test_monitoring_reads_one_line(gpudiag: Gpudiag, tmp_path: Path) -> None:
    got = gpudiag("check", *BUS, "--nagios", "--narrate", env=environment(tmp_path, DEAD, ""))
    assert got.code == 3
    assert got.out.count("\n") == 1


def at_rest(pid: int) -> None:
    """Until a process waits: the answer is made, and only the model is waited for."""
    process = psutil.Process(pid)
    used, until = -1.0, time.monotonic() + 60
    while (now := sum(process.cpu_times()[:2])) > used and time.monotonic() < until:
        used = now
        time.sleep(0.5)


@pytest.mark.parametrize("shape", ["text", "json"])
def test_ctrl_c_ends_the_wait_and_not_the_answer(
    gpudiag: Gpudiag, server: Model, tmp_path: Path, clean_environment: dict[str, str], shape: str
) -> None:
    """In a process of its own: a signal to this one would meet whatever the test runner does just then."""
    server.mode, server.seconds = "slow", 300.0
    env = environment(tmp_path, server.base, stand_in_python())
    words = ("check", *BUS, "--format", shape)
    off = gpudiag(*words, env=env)
    server.requests.clear()
    argv = [sys.executable, "-m", "assistant", *words, "--narrate"]
    with subprocess.Popen(
        argv, env=clean_environment | env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        seen = b""
        while shape == "text" and len(seen) < len(off.out.encode()):  # it stands before anything of the model is known
            part = os.read(process.stdout.fileno(), 65536)
            assert part, seen
            seen += part
        until = time.monotonic() + 60
        while not server.requests and time.monotonic() < until:
            time.sleep(0.05)
        at_rest(process.pid)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    added = "" if shape == "text" else ',\n "narration": {"withheld": "closed"}\n}\n'
    assert (seen + out).decode() == (off.out.removesuffix("\n}\n") + added if added else off.out)
    assert process.returncode == off.code
    assert err.decode() == "gpudiag: narration withheld: The wait for the model was broken off.\n"


def test_a_report_has_a_draft_below_our_summary(gpudiag: Gpudiag, server: Model, tmp_path: Path) -> None:
    server.mode, server.text = "ok", TRUE
    env = environment(tmp_path, server.base, stand_in_python())
    dead = environment(tmp_path, DEAD, "/none/python")
    assert gpudiag("incident", "open", *BUS, env=env).code == 0
    assert gpudiag("incident", "close", "1", "rebooted", env=env).code == 0  # nothing of the report counts on
    for shape in ("text", "html", "json"):
        words = ("incident", "report", "1", "--format", shape)
        off, on = gpudiag(*words, env=env), gpudiag(*words, "--narrate", env=dead)
        assert on.code == off.code == 0
        assert "withheld" in on.err
        kept = on.out.replace(',\n "narration": {"withheld": "down"}\n}\n', "\n}\n") if shape == "json" else on.out
        assert kept == off.out
    off, on = (gpudiag("incident", "report", "1", *more, env=env) for more in ((), ("--narrate",)))
    draft = "Summary, drafted by openai/m (ours is above):\n\nGPU 0000:ba:00.0 has fallen off the bus.\n\n"
    assert on.out.replace(draft, "", 1) == off.out
    assert on.out.index("Summary\n") < on.out.index(draft) < on.out.index("Cause\n")
    page = gpudiag("incident", "report", "1", "--format", "html", env=env).out
    told = render.page(page, Retold("en", "<b>a & b</b>"), "openai/m", draft=True, ahead='<h2 id="cause">')
    assert "<b>a" not in told
    assert told.index('id="summary"') < told.index("&lt;b&gt;a &amp; b") < told.index('id="cause"')
