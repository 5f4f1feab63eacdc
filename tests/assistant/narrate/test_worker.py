"""The process that speaks to the model, with the real litellm and a server of our own: whatever either does, there is an answer or a reason.

How a process ends and is begun again does not depend on what it has loaded: that is tried with the stand-in.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.narrate.completion import Model
from assistant.narrate.hosts import place
from assistant.narrate.process import FIXED, INHERITED, Child, refuse_malware
from assistant.narrate.reasons import NarrationError, Reason
from assistant.narrate.worker import WAITING, Worker
from tests.llm_lab import FINE, ROOT, llm_python, loaded, serving, stand_in_python
from tests.llm_lab import Model as Server

ASK = [{"role": "system", "content": "Answer in JSON."}, {"role": "user", "content": "{f1.title}"}]
KEY = "sk-a-key-that-nobody-may-see"
LONG = 60.0  # seconds: for what should not end at its deadline on a busy machine


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as model:
        yield model


@pytest.fixture(scope="module")
def worker(server: Server) -> Iterator[Worker]:
    """One for the whole file: loading litellm costs seconds."""
    one = loaded(Worker(Model(llm_python(), place(server.base, ""), "openai/test-model", KEY), LONG))
    assert one.version
    yield one
    one.close()


@pytest.fixture(autouse=True)
def _as_it_was(request: pytest.FixtureRequest) -> None:
    """The server behaves again, and nothing is left to be counted."""
    if "server" in request.fixturenames:
        model: Server = request.getfixturevalue("server")
        model.mode, model.text, model.finish, model.seconds = "ok", FINE, "stop", 30.0
        model.requests.clear()


def refused(worker: Worker, deadline: float = LONG) -> NarrationError:
    with pytest.raises(NarrationError) as caught:
        worker.complete(ASK, 50, deadline)
    return caught.value


def settled(worker: Worker) -> int:
    """The child's number, once it answers: on a busy machine one before may have been killed, and there is a pause then."""
    until = time.monotonic() + LONG
    while True:
        try:
            assert worker.complete(ASK, 50).text == FINE
            break
        except NarrationError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
    assert worker.pid is not None
    return worker.pid


def test_a_completion_says_what_it_took(worker: Worker, server: Server) -> None:
    got = worker.complete(ASK, 50)
    assert got.text == FINE
    assert (got.model, got.prompt_tokens, got.completion_tokens, got.cost_usd) == ("test-model", 100, 20, None)
    assert 0 < got.seconds < LONG


def test_what_is_sent_is_what_was_given_and_no_more(worker: Worker, server: Server) -> None:
    worker.complete(ASK, 50)
    (got,) = server.requests
    assert got.path == "/v1/chat/completions"
    assert got.body == {
        "model": "test-model", "messages": ASK, "max_tokens": 50, "temperature": 0, "response_format": {"type": "json_object"},
    }  # fmt: skip
    headers = {k.lower(): v for k, v in got.headers.items()}
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["user-agent"] == "gpudiag"
    assert set(headers) <= {
        "host", "accept", "accept-encoding", "connection", "content-type", "content-length", "authorization", "user-agent",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("error", Reason.DOWN), ("refuse", Reason.REFUSED), ("busy", Reason.REFUSED), ("cut", Reason.CUT),
        ("cut_unsized", Reason.MALFORMED), ("length", Reason.CUT), ("stream", Reason.MALFORMED), ("huge", Reason.HUGE),
        ("html", Reason.MALFORMED), ("empty", Reason.MALFORMED),
    ],
)  # fmt: skip
def test_a_server_that_does_badly_is_asked_once_and_has_a_reason(
    worker: Worker, server: Server, mode: str, reason: Reason
) -> None:
    child = settled(worker)
    server.requests.clear()
    server.mode = mode
    error = refused(worker)
    assert error.reason is reason, error
    assert len(server.requests) == 1  # no retry
    assert KEY not in str(error)
    server.mode = "ok"
    assert worker.complete(ASK, 50).text == FINE
    assert worker.pid == child  # none of this costs a new start


@pytest.mark.parametrize(
    ("text", "finish", "reason"),
    [
        ('{"sentences": [{"text": "and th', "stop", Reason.CUT), (FINE, "length", Reason.CUT),
        (FINE, "content_filter", Reason.REFUSED), (FINE, "tool_calls", Reason.REFUSED), ("Sure! Here it is.", "stop", Reason.MALFORMED),
        ("[1, 2]", "stop", Reason.MALFORMED), ("", "stop", Reason.MALFORMED), ("[" * 20000, "stop", Reason.MALFORMED),
        ("\x1b[2J\u202e{}", "stop", Reason.MALFORMED),
    ],
    ids=["half", "at-the-limit", "filtered", "tools", "chatty", "list", "nothing", "nested", "escapes"],
)  # fmt: skip
def test_an_answer_is_one_whole_json_object(
    worker: Worker, server: Server, text: str, finish: str, reason: Reason
) -> None:
    server.text, server.finish = text, finish
    assert refused(worker).reason is reason


def test_a_flaky_server_fails_and_works_in_turn(worker: Worker, server: Server) -> None:
    server.mode = "flaky"
    assert refused(worker).reason is Reason.DOWN
    assert worker.complete(ASK, 50).text == FINE
    assert len(server.requests) == 2


@pytest.mark.process
def test_a_redirect_leads_nowhere(worker: Worker, server: Server) -> None:
    with serving() as other:
        for where in (other.base, f"http://localhost:{other.port}/v1", f"http://127.0.0.1:{server.port}/elsewhere"):
            server.mode, server.to = "redirect", f"{where}/chat/completions"
            assert refused(worker).reason is Reason.REFUSED
        assert other.requests == []
    assert len(server.requests) == 3


def test_a_model_that_is_silent_is_given_up_at_the_deadline(worker: Worker, server: Server) -> None:
    child = settled(worker)
    server.requests.clear()
    server.mode = "slow"
    assert refused(worker, 5.0).reason is Reason.SLOW
    assert len(server.requests) == 1
    assert worker.pid == child  # it gave up by itself


def test_more_requests_than_anybody_asks_at_once_are_not_queued(worker: Worker, server: Server) -> None:
    server.mode, server.seconds = "slow", 3.0
    futures = [worker.submit(ASK, 50) for _ in range(WAITING + 4)]
    assert not futures[0].done()  # whoever submits never waits
    server.seconds = 0.1
    errors = [f.exception(LONG) for f in futures]
    reasons = [e.reason for e in errors if isinstance(e, NarrationError)]
    assert errors[0] is None
    assert set(reasons) == {Reason.BUSY}
    assert 3 <= len(reasons) <= 4  # one is asked, four wait


def test_the_child_sees_nothing_of_ours(worker: Worker) -> None:
    """Its real environment, arguments and folder, as the kernel has them."""
    process = Path(f"/proc/{settled(worker)}")
    variables = dict(v.split("=", 1) for v in process.joinpath("environ").read_text().split("\0") if v)
    assert set(variables) <= {*FIXED, *INHERITED}
    assert str(process.joinpath("cwd").readlink()) == "/"
    assert KEY not in process.joinpath("cmdline").read_text() + process.joinpath("environ").read_text()
    limits = process.joinpath("limits").read_text()
    assert "Max core file size        0 " in limits
    state = process.joinpath("status").read_text()
    assert "NoNewPrivs:\t1\n" in state
    assert "CapEff:\t0000000000000000\n" in state
    assert "CapPrm:\t0000000000000000\n" in state


@pytest.mark.process
def test_secrets_of_the_environment_do_not_reach_the_child(tmp_path: Path) -> None:
    """A whole process with secrets in its environment and a .env in its folder; the kernel tells what its child got."""
    (tmp_path / ".env").write_text("OPENAI_API_KEY=from-dotenv\n")
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 60\n")
    python.chmod(0o755)
    program = (
        f"from assistant.narrate.process import Child\nchild = Child({str(python)!r}, {{}})\n"
        "import time\nuntil = time.monotonic() + 20\n"  # while one program takes the place of another nothing can be read of it
        "while not (got := open(f'/proc/{child.pid}/environ').read()) and time.monotonic() < until:\n    time.sleep(0.01)\n"
        "print(got)\nprint(__import__('os').readlink(f'/proc/{child.pid}/cwd'))\nchild.kill()"
    )
    secrets = {
        "AWS_SECRET_ACCESS_KEY": "s3cret",
        "GPUDIAG_LLM_KEY": "s3cret",
        "OPENAI_API_KEY": "s3cret",
        "HTTPS_PROXY": "http://s3cret",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), **secrets}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert "LITELLM_MODE=PRODUCTION" in done.stdout
    assert "s3cret" not in done.stdout
    assert done.stdout.endswith("\n/\n")  # no .env there


@pytest.mark.process
def test_what_libraries_print_does_not_reach_the_protocol(tmp_path: Path) -> None:
    """A litellm that shouts on both streams, by descriptor and by print, while it is loaded and while it is asked."""
    package = tmp_path / "lib/litellm.py"
    package.parent.mkdir()
    package.write_text(
        "import os, sys\nprint('{\"ready\": \"banner\"}')\nos.write(1, b'noise\\n'); os.write(2, b'noise\\n')\n"
        "def get_model_info(model): raise Exception('none')\n"
        "def completion(**kw):\n    print('Give Feedback'); os.write(1, b'\\n{}\\n'); sys.stdout.flush()\n    raise ValueError('no')\n"
    )
    (tmp_path / "lib/httpx.py").write_text(
        "class Client:\n    def __init__(self, **kw): pass\n    def send(self): pass\n"
    )
    info = tmp_path / "lib/litellm-1.106.2.dist-info/METADATA"
    info.parent.mkdir()
    info.write_text("Metadata-Version: 2.1\nName: litellm\nVersion: 1.106.2\n")
    python = tmp_path / "python"
    python.write_text(
        f"#!/bin/sh\nexec {sys.executable} -I -c \"import sys, runpy; sys.path.insert(0, '{tmp_path}/lib'); "
        'del sys.argv[0]; runpy.run_path(sys.argv[0], run_name=\'__main__\')" "$2" "$3"\n'
    )
    python.chmod(0o755)
    worker = loaded(Worker(Model(str(python), place("http://127.0.0.1:9/v1", ""), "openai/m"), LONG))
    try:
        assert worker.version == "1.106.2"
        error = refused(worker)
        assert (error.reason, error.detail) == (Reason.MALFORMED, "ValueError: no")
    finally:
        worker.close()


def gone(pid: int) -> bool:
    """Whether a process has ended (a zombie has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def ends(pid: int, within: float = 10.0) -> bool:
    until = time.monotonic() + within
    while time.monotonic() < until:
        if gone(pid):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.process
def test_a_killed_child_is_begun_again(server: Server) -> None:
    worker = loaded(Worker(Model(stand_in_python(), place(server.base, ""), "openai/test-model", KEY), LONG))
    child = settled(worker)
    server.requests.clear()
    server.mode = "slow"
    future = worker.submit(ASK, 50)
    until = time.monotonic() + 10
    while not server.requests and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    error = future.exception(10)
    assert isinstance(error, NarrationError)
    assert error.reason is Reason.DOWN
    server.mode = "ok"
    assert settled(worker) != child
    worker.close()


@pytest.mark.process
def test_a_model_that_dribbles_is_killed_at_the_deadline(worker: Worker, server: Server) -> None:
    """No read waits long, so litellm's own timeout never comes: the parent ends it, with its group, and begins another."""
    child = settled(worker)
    server.mode = "dribble"
    assert refused(worker, 1.0).reason is Reason.SLOW
    assert ends(child)
    server.mode = "ok"
    assert settled(worker) != child


@pytest.mark.process
def test_a_lost_child_is_begun_again_after_a_pause(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    worker = Worker(Model(str(python), place("http://127.0.0.1:9/v1", ""), "openai/m"), LONG)
    details = [refused(worker).detail for _ in range(4)]
    worker.close()
    assert "begun again in" in details[-1]
    assert "begun again in" not in details[0]


@pytest.mark.process
def test_a_child_ends_with_the_process_that_began_it() -> None:
    """Killed outright: nothing of it can clean up."""
    hello = {"host": "127.0.0.1", "port": 9, "base": "http://127.0.0.1:9", "model": "openai/m", "key": ""}
    program = (
        f"import time\nfrom assistant.narrate.process import Child\nchild = Child({stand_in_python()!r}, {hello!r})\n"
        "child.receive(time.monotonic() + 60)\nsaid = child.receive(time.monotonic() + 60)\nprint(child.pid, 'ready' in said, flush=True)\ntime.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert parent.stdout is not None
    number, ready = parent.stdout.readline().split()
    child = int(number)
    assert ready == b"True"
    assert not gone(child)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert ends(child)


@pytest.mark.process
def test_closing_ends_all() -> None:
    with serving() as server:
        server.mode = "slow"
        worker = Worker(Model(stand_in_python(), place(server.base, ""), "openai/m"), LONG)
        future = worker.submit(ASK, 50)
        until = time.monotonic() + 10
        while worker.pid is None and time.monotonic() < until:
            time.sleep(0.01)
        child = worker.pid
        assert child is not None
        worker.close()
        assert ends(child)
        error = future.exception(10)
        assert isinstance(error, NarrationError)
        assert refused(worker).reason is Reason.CLOSED


@pytest.mark.parametrize("version", ["1.82.7", "1.82.8", "1.107.0"])
def test_an_environment_with_malware_is_not_even_started(tmp_path: Path, version: str) -> None:
    python, mark = tmp_path / "bin/python", tmp_path / "started"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\ntouch {mark}\n")
    python.chmod(0o755)
    (tmp_path / f"lib/python3.11/site-packages/litellm-{version}.dist-info").mkdir(parents=True)
    with pytest.raises(NarrationError) as caught:
        Child(str(python), {})
    assert caught.value.reason is Reason.UNSAFE
    assert not mark.exists()
    refuse_malware(sys.executable)


@pytest.mark.process
def test_no_interpreter_and_no_litellm(tmp_path: Path) -> None:
    where = place("http://127.0.0.1:9/v1", "")
    worker = Worker(Model(str(tmp_path / "none"), where, "openai/m"), LONG)
    error = refused(worker)
    assert error.reason is Reason.NOT_INSTALLED
    assert "llm_python" in error.said.en
    worker.close()
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    worker = Worker(Model(str(bare), where, "openai/m"), LONG)
    assert refused(worker).reason is Reason.NOT_INSTALLED
    worker.close()
