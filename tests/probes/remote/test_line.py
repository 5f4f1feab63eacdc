"""Far sides that hang, close, flood and lie: nobody waits for them, and none of them is believed."""

from __future__ import annotations

import json
import threading
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knowledge.observation import Status
from knowledge.text import clean
from probes.host import REPLY_STATUS
from probes.remote import ConnectError
from probes.remote.reach import Reach
from probes.remote.remote_host import RemoteHost, Waits
from tests.at_once import at_once
from tests.probes.remote.liars import liar
from tests.probes.remote.processes import gone, marked

pytestmark = pytest.mark.process

# Each example is a process: half as many as the profile asks for.
HALF = settings(max_examples=settings().max_examples // 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
IMPATIENT = Waits(answer=0.7, start=1.0, read=0.5)


def host(body: str, *, budget: float = 20, timeout: float = 5, waits: Waits = IMPATIENT) -> RemoteHost:
    reach = Reach("gpu-12", connect_timeout=timeout)
    return RemoteHost(reach, budget=budget, command=liar(body), cap=1 << 16, waits=waits)


# --- before they begin --------------------------------------------------------------------------

NEVER = {
    "says nothing": ("time.sleep(60)", "no answer in 1 s"),
    "closes": ("", "it was closed there"),
    "fails": ("sys.exit(3)", "exit code 3"),
    "closes its output and stays": ("os.close(1); time.sleep(60)", "no connection"),
    "floods": ("while True: raw(b'welcome! ' * 1000)", "prints without end"),
    "floods one line": ("raw(b'x' * 70000); time.sleep(60)", "prints without end"),
    "complains without end": ("while True: os.write(2, b'tsk ' * 1000); time.sleep(0.001)", "no answer in 1 s"),
    "gibberish": ("raw(mark + b'\\xff' * 4096)", "makes no sense"),
    "no hello": ("raw(mark); frame({'id': 1})", "makes no sense"),
    "no JSON": ("raw(mark); frame(b'{')", "makes no sense"),
    "a list": ("raw(mark); frame([1])", "makes no sense"),
    "deep": ("raw(mark); frame(b'[' * 60000)", "makes no sense"),
    "a long header": ("raw(mark + struct.pack('>II', 1 << 30, 0)); time.sleep(60)", "makes no sense"),
    "a long body": ("raw(mark + struct.pack('>II', 2, 1 << 30) + b'{}'); time.sleep(60)", "makes no sense"),
    "another kind": ("begin(hello=2); time.sleep(60)", "something else answers"),
    "no version": ("begin(python='3'); time.sleep(60)", "no version"),
    "odd version": ("begin(python=[3, '8', None]); time.sleep(60)", "no version"),
    "too old": ("begin(python=[3, 5, 2]); time.sleep(60)", "3.6 or newer"),
    "no clock": ("begin(time='now'); time.sleep(60)", "no clock"),
    "a clock of another age": ("begin(time=1 << 70); time.sleep(60)", "no clock"),
    "no user": ("begin(uid='root'); time.sleep(60)", "no user"),
    "no answer after hello": ("begin(); time.sleep(60)", "no answer"),
    "leaves after hello": ("begin()", "no connection"),
}  # fmt: skip


def test_it_never_begins() -> None:
    def law(name: str) -> None:
        body, said = NEVER[name]
        mark = marked()
        reach = Reach("gpu-12", connect_timeout=1 if "in 1 s" in said else 10)
        host = RemoteHost(reach, budget=20, command=[*liar(body), mark], waits=IMPATIENT)
        with pytest.raises(ConnectError, match="gpu-12") as caught:
            host.connect()
        assert said in caught.value.message
        assert gone(mark, 5)

    at_once(law, NEVER)


@HALF
@given(noise=st.binary(max_size=300))
def test_whatever_is_printed_before(tmp_path: Path, noise: bytes) -> None:
    (tmp_path / "noise").write_bytes(noise)
    body = f"raw(open({str(tmp_path / 'noise')!r}, 'rb').read())\nbegin()\nfor ask in questions(): good(ask)"
    with host(body) as h:
        assert h.read("/x").data == b"fine"


@HALF
@given(said=st.binary(max_size=300))
def test_whatever_is_said_after(tmp_path: Path, said: bytes) -> None:
    (tmp_path / "said").write_bytes(said)
    body = f"begin()\nfor ask in questions():\n raw(open({str(tmp_path / 'said')!r}, 'rb').read()); break"
    with host(body) as h:
        assert h.read("/x").status is Status.FAILED
        assert h.read("/y").status is Status.FAILED
        assert h.broken


def test_its_name_is_ours() -> None:
    with host("begin(host='other\\x1b[31m\\nhost', user='a\\x00b' * 500)\nfor ask in questions(): good(ask)") as h:
        assert h.name == "gpu-12"
        assert h.hostname == "other host"
        assert "\x00" not in h.whoami.user
        assert len(h.whoami.user) <= 255


# --- while they answer --------------------------------------------------------------------------

LIES = {
    "an answer to nobody": "frame({'id': 999, 'end': True})",
    "an answer to what is no number": "frame({'id': 'x', 'end': True})",
    "an answer to nothing": "frame({'end': True})",
    "an exit that is none": "good(ask, exit='0')",
    "an exit that cannot be": "good(ask, exit=9999)",
    "less than nothing lost": "good(ask, lost=-1)",
    "a head beyond the end": "good(ask, head=99999)",
    "a head that is true": "good(ask, head=True)",
    "a said head beyond the end": "good(ask, said={'ok': True, 'head': 10**9})",
    "a said loss that is none": "good(ask, said={'ok': True, 'lost': 'x'})",
    "an error number that is none": "good(ask, said={'ok': False, 'errno': [], 'why': 'x'})",
    "a stuck process that is none": "good(ask, stuck=['x'])",
    "a fault that is none": "good(ask, fault='x')",
    "a said fault that is none": "good(ask, said={'fault': [1]})",
    "a word that is none": "good(ask, said='x')",
    "a body that is no zlib": "frame({'id': ask['id'], 'part': 'out', 'z': 10}, b'xxxx')",
    "a size that is none": "frame({'id': ask['id'], 'part': 'out', 'z': 'x'}, zlib.compress(b'x'))",
    "a bomb": "frame({'id': ask['id'], 'part': 'out', 'z': 100}, zlib.compress(bytes(1 << 26), 1))",
    "another size": "frame({'id': ask['id'], 'part': 'out', 'z': 5}, zlib.compress(b'12345678'))",
    "more than was asked for": "while True: frame({'id': ask['id'], 'part': 'out'}, bytes(1 << 16))",
    "errors without end": "while True: frame({'id': ask['id'], 'part': 'err'}, bytes(1 << 16))",
    "half a frame": "raw(struct.pack('>II', 50, 50) + b'{'); sys.exit(0)",
    "a crash": "sys.exit('Traceback: no memory')",
}


FLOODS = ("a bomb", "more than was asked for", "errors without end")


def test_a_lie_ends_the_line() -> None:
    at_once(believe_nothing, [name for name in LIES if name not in FLOODS])


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_ends_the_line(name: str) -> None:
    tracemalloc.start()  # makes everything slow
    try:
        believe_nothing(name)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def believe_nothing(name: str) -> None:
    told = []
    with host(f"begin()\nfor ask in questions():\n {LIES[name]}") as h:
        threads = [threading.Thread(target=lambda: told.append(h.run(["sleep", "1"], deadline=8))) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        told += [h.read("/x"), h.run(["x"], deadline=1), h.snapshot("system", deadline=1)]
        assert h.broken
        with pytest.raises(ConnectError, match="broke"):
            h.files("/*")
        with pytest.raises(ConnectError, match="broke"):
            h.which(["sh"])
    assert {r.status for r in told} == {Status.FAILED}
    assert all("the connection to gpu-12 broke: " in r.detail for r in told)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["ok", "lost", "head", "errno", "why", "fault", "absent", "x"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)
ENDS = st.dictionaries(
    st.sampled_from(["exit", "lost", "head", "timed_out", "stuck", "fault", "said", "time", "end"]),
    ANYTHING
    | st.sampled_from(
        [
            0,
            1,
            4,
            [1, "2", "state D"],
            [13, "no"],
            {"ok": True},
            {"ok": False, "errno": 13},
            {"absent": True},
            {"fault": [2, "x"]},
        ]
    ),
)


@HALF
@given(ends=st.lists(ENDS, min_size=1, max_size=6))
def test_however_they_say_that_it_ended(tmp_path: Path, ends: list[dict[str, object]]) -> None:
    """Whatever an answer looks like, a call comes to a reply, in words that are clean."""
    (tmp_path / "ends").write_text(json.dumps(ends))
    body = f"""
begin()
ends = json.load(open({str(tmp_path / "ends")!r}))
for n, ask in enumerate(questions()):
    frame({{'id': ask['id'], 'part': 'out'}}, b'fine')
    frame({{'end': True, **ends[n % len(ends)], 'id': ask['id']}})
"""
    with host(body) as h:
        for _ in ends:
            for reply in (h.read("/x"), h.run(["x"], deadline=0.3), h.snapshot("nvml", deadline=0.3)):
                assert reply.status in REPLY_STATUS
                assert reply.detail == clean(reply.detail)
                assert len(reply.detail) < 700
            with suppress(ConnectError):
                assert all(isinstance(p, str) for p in h.files("/*"))
                assert h.which(["sh"]).keys() <= {"sh"}


def test_a_question_without_an_answer_costs_only_itself() -> None:
    body = "begin()\nfor ask in questions():\n if ask['op'] != 'run': good(ask)"
    with host(body) as h:
        reply = h.run(["x"], deadline=0.2)
        assert reply.status is Status.TIMEOUT
        assert "no word of it" in reply.detail
        assert h.read("/x").data == b"fine"
        assert not h.broken


def test_an_answer_that_comes_too_late_is_nobodys() -> None:
    body = """
begin()
held = []
for ask in questions():
    if ask['op'] == 'run': held.append(ask); continue
    for old in held: good(old, b'late')
    held = []
    good(ask)
"""
    with host(body) as h:
        assert h.run(["x"], deadline=0.1).status is Status.TIMEOUT
        assert h.read("/x").data == b"fine"
        assert h.read("/y").data == b"fine"


def test_it_reads_nothing_more() -> None:
    """Its input fills up: who asks still gets a word, and closing does not wait for it."""
    body = "begin()\nfor n, ask in enumerate(questions()):\n good(ask)\n break\ntime.sleep(60)"
    with host(body) as h:
        assert h.read("/x").data == b"fine"
        assert h.run(["x" * 200_000], deadline=0.05).status is Status.TIMEOUT  # more than a pipe holds
        assert h.snapshot("nvml", deadline=0.05).status is Status.TIMEOUT


def test_it_drips_for_ever() -> None:
    body = (
        "begin()\nfor ask in questions():\n while True: frame({'id': ask['id'], 'part': 'out'}, b'.'); time.sleep(0.05)"
    )
    with host(body, budget=0.5, timeout=1, waits=replace(IMPATIENT, margin=0.5, answer=30)) as h:
        reply = h.run(["x"], deadline=0.2)
        assert reply.status is Status.FAILED
        assert "was spent" in reply.detail


def test_text_of_theirs_is_cleaned() -> None:
    body = "begin()\nfor ask in questions(): good(ask, said={'ok': False, 'errno': 5, 'why': 'a\\x1b[2J\\nb' * 1000})"
    with host(body) as h:
        reply = h.read("/x")
        assert reply.status is Status.FAILED
        assert "\x1b" not in reply.detail
        assert len(reply.detail) < 400
