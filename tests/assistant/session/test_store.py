"""Conversations on disk: kept whole, alone, and for so long; trouble costs the memory, never the answer."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from platformdirs import user_state_path

from assistant.config import load as load_settings
from assistant.session.key import Key
from assistant.session.store import DAY, Dialogues, dialogues
from knowledge.errors import ConfigError
from tests.conftest import ROOT

KEY = Key("cli", "/dev/pts/3", "", "1000")
ANY = st.text(max_size=40)


class Clock:
    """A time that a test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000 * 10**9

    def __call__(self) -> int:
        return self.now


def only(store: Dialogues, end: str = ".json.gz") -> Path:
    """The one file of the folder that ends so."""
    (found,) = [p for p in store.folder.iterdir() if p.name.endswith(end)]
    return found


# --- what is kept -------------------------------------------------------------------------


def test_what_was_kept_comes_back(tmp_path: Path) -> None:
    store = Dialogues(tmp_path / "state" / "dialogues")
    data = {"turns": ["为什么?", "\ud800", "a\nb"], "n": 2**60, "x": None, "share": 0.25}
    assert store.load(KEY) is None
    assert store.save(KEY, data)
    assert Dialogues(store.folder).load(KEY) == data
    assert store.load(KEY._replace(thread="other")) is None
    assert store.forget(KEY)
    assert not store.forget(KEY)
    assert store.load(KEY) is None
    assert store.complaints == []


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir(mode=0o755)
    store = Dialogues(tmp_path / "d")
    store.save(KEY, {"line": "secret"})
    assert store.folder.stat().st_mode & 0o777 == 0o700
    assert {p.stat().st_mode & 0o777 for p in store.folder.iterdir()} == {0o600}


@given(st.lists(st.tuples(ANY, ANY, ANY, ANY).map(lambda t: Key(*t)), unique=True, max_size=5))
def test_no_key_leaves_the_folder_or_meets_another(keys: list[Key]) -> None:
    stems = [key.stem for key in keys]
    assert len(set(stems)) == len(keys)
    assert all(set(stem) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") and len(stem) < 100 for stem in stems)


def test_keys_that_mean_harm(tmp_path: Path) -> None:
    store = Dialogues(tmp_path / "a" / "dialogues")
    for name in ("../../escaped", "/etc/passwd", "a\0b", "x" * 100_000, "\ud800"):
        key = Key(name, name, name, name)
        assert store.save(key, {"of": name[:9]})
        assert store.load(key) == {"of": name[:9]}
    assert {p.parent for p in tmp_path.rglob("*.gz")} == {store.folder}


# --- read, change, write ------------------------------------------------------------------


def test_opened_keeps_what_the_body_leaves(tmp_path: Path) -> None:
    store = Dialogues(tmp_path)
    with store.opened(KEY) as memory:
        assert memory.data is None
        memory.data = {"n": 1}
    with store.opened(KEY) as memory:
        assert memory.data == {"n": 1}
        memory.data["n"] = 2
    assert store.load(KEY) == {"n": 2}
    with pytest.raises(KeyboardInterrupt):
        broken_off(store)
    assert store.load(KEY) == {"n": 2}, "a turn that was broken off leaves the talk as it was"
    with store.opened(KEY) as memory:
        memory.data = None
    assert store.load(KEY) is None


def broken_off(store: Dialogues) -> None:
    """A turn that somebody ends with Ctrl-C."""
    with store.opened(KEY) as memory:
        memory.data = {"n": 3}
        raise KeyboardInterrupt


ADD = """
import sys
from pathlib import Path
from assistant.session.key import Key
from assistant.session.store import Dialogues
store = Dialogues(Path(sys.argv[1]))
for n in range(int(sys.argv[3])):
    with store.opened(Key("cli", "/dev/pts/3", "", "1000")) as memory:
        memory.data = {"turns": [*(memory.data or {"turns": []})["turns"], f"{sys.argv[2]}.{n}"], "pad": "x" * 20000}
assert store.complaints == [], store.complaints
"""


def child(code: str, *args: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code, *args], cwd=ROOT, stderr=subprocess.PIPE)


@pytest.mark.process
def test_no_turn_is_lost_when_many_speak_at_once(tmp_path: Path) -> None:
    running = [child(ADD, str(tmp_path), str(n), "8") for n in range(6)]
    for one in running:
        assert one.communicate(timeout=120)[1] == b""
    kept = Dialogues(tmp_path).load(KEY)
    assert kept is not None
    assert sorted(kept["turns"]) == sorted(f"{who}.{n}" for who in range(6) for n in range(8))
    for who in range(6):  # each one's own turns in their order
        assert [t for t in kept["turns"] if t.startswith(f"{who}.")] == [f"{who}.{n}" for n in range(8)]


@pytest.mark.process
def test_killed_while_it_writes(tmp_path: Path) -> None:
    """Whenever it is killed, what is kept is one of the states that were put there, never less than before."""
    store, least = Dialogues(tmp_path), 0
    for round_ in range(12):
        one = child(ADD, str(tmp_path), f"r{round_}", "100000")
        until = time.monotonic() + 30
        while len((store.load(KEY) or {"turns": []})["turns"]) <= least and time.monotonic() < until:
            time.sleep(0.002 * (round_ + 1))
        one.send_signal(signal.SIGKILL)
        one.communicate(timeout=30)
        kept = store.load(KEY)
        assert kept is not None
        assert len(kept["turns"]) > least
        assert len(kept["pad"]) == 20000
        least = len(kept["turns"])
    assert store.complaints == []
    store.save(KEY, {"n": 1})
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".cli")] == [], "what the killed left is gone"


HOLD = """
import sys, time
from pathlib import Path
from assistant.session.key import Key
from assistant.session.store import Dialogues
with Dialogues(Path(sys.argv[1])).opened(Key("cli", "/dev/pts/3", "", "1000")) as memory:
    memory.data = {"by": "holder"}
    sys.stderr.write("in\\n"); sys.stderr.flush()
    time.sleep(600)
"""


@pytest.mark.process
def test_who_waits_too_long_goes_on_without_memory(tmp_path: Path) -> None:
    store = Dialogues(tmp_path)
    store.save(KEY, {"n": 1})
    one = child(HOLD, str(tmp_path))
    assert one.stderr is not None
    assert one.stderr.readline() == b"in\n"
    with store.opened(KEY, patience=0.2) as memory:
        assert memory.data == {"n": 1}
        memory.data = {"n": 2}
    assert store.load(KEY) == {"n": 1}
    assert ["still running" in t.en and "仍在进行" in t.zh for t in store.complaints] == [True]
    with store.opened(KEY._replace(thread="b"), patience=0.2) as memory:  # another conversation does not wait
        memory.data = {"n": 3}
    assert store.load(KEY._replace(thread="b")) == {"n": 3}
    one.kill()
    one.communicate(timeout=30)
    with store.opened(KEY, patience=5) as memory:  # its lock went with it
        memory.data = {"n": 4}
    assert store.load(KEY) == {"n": 4}


# --- how long -----------------------------------------------------------------------------


def test_it_expires_after_its_last_turn(tmp_path: Path) -> None:
    clock = Clock()
    store = Dialogues(tmp_path, days=7, clock=clock)
    store.save(KEY, {"n": 1})
    clock.now += 7 * DAY
    assert store.load(KEY) == {"n": 1}
    with store.opened(KEY):
        pass  # a turn, though it changed nothing
    clock.now += 7 * DAY
    assert store.load(KEY) == {"n": 1}
    clock.now += 1
    assert store.load(KEY) is None
    assert store.complaints == []


def age(path: Path, ns: int) -> None:
    os.utime(path, ns=(ns, ns))


def test_old_ones_are_pruned_with_their_locks_and_what_was_set_aside(tmp_path: Path) -> None:
    clock = Clock()
    store = Dialogues(tmp_path, days=7, clock=clock)
    old, new = KEY, KEY._replace(thread="new")
    store.save(old, {})
    (tmp_path / "x.json.gz.damaged").write_bytes(b"")
    (tmp_path / ".x.json.gz.abcd").write_bytes(b"")
    (tmp_path / "gone.json.gz.lock").write_bytes(b"")
    for path in tmp_path.iterdir():
        age(path, clock.now - 8 * DAY)
    store.save(new, {})
    for path in tmp_path.glob("*new*"):
        age(path, clock.now)
    assert store.prune(clock.now) == 1
    assert {p.name for p in tmp_path.iterdir()} == {new.stem + ".json.gz", new.stem + ".json.gz.lock"}
    assert store.prune(clock.now) == 0


def test_pruned_at_most_once_a_day_and_never_under_somebody(tmp_path: Path) -> None:
    clock = Clock()
    store = Dialogues(tmp_path, days=1, clock=clock)
    other = KEY._replace(thread="other")

    def left_alone() -> bool:
        """Whether an old file is still there after a turn of another conversation."""
        store.save(other, {})
        for path in tmp_path.glob(f"{other.stem}*"):
            age(path, clock.now - 2 * DAY)
        with store.opened(KEY):
            pass
        return (tmp_path / f"{other.stem}.json.gz").exists()

    assert [left_alone(), left_alone()] == [False, True]
    clock.now += DAY
    assert not left_alone()
    store.save(other, {})
    with store.opened(other):
        for path in tmp_path.glob(f"{other.stem}*"):
            age(path, clock.now - 2 * DAY)
        assert store.prune(clock.now) == 0
    assert (tmp_path / f"{other.stem}.json.gz").exists()


def test_zero_days_keep_nothing_and_remove_what_there_was(tmp_path: Path) -> None:
    Dialogues(tmp_path).save(KEY, {"n": 1})
    store = Dialogues(tmp_path, days=0)
    assert store.load(KEY) is None
    with store.opened(KEY) as memory:
        assert memory.data is None
        memory.data = {"n": 2}
    assert [p.name for p in tmp_path.iterdir() if not p.name.startswith(".")] == []
    assert not store.save(KEY, {})
    untouched = Dialogues(tmp_path / "never", days=0)
    with untouched.opened(KEY) as memory:
        memory.data = {}
    assert not untouched.folder.exists()


def test_the_folder_is_where_the_platform_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = load_settings({}, {}, ())
    for value in ("", str(tmp_path)):
        monkeypatch.setenv("XDG_STATE_HOME", value)
        assert dialogues(settings).folder == user_state_path("gpudiag") / "dialogues"


def test_the_setting(tmp_path: Path) -> None:
    assert load_settings({}, {}, ()).dialogue.days == 7
    state = {"GPUDIAG_STATE_DIR": str(tmp_path)}
    store = dialogues(load_settings({}, {"GPUDIAG_DIALOGUE_DAYS": "0", **state}, ()))
    assert (store.days, store.folder) == (0, tmp_path / "dialogues")
    (tmp_path / "c.toml").write_text("dialogue_days = 0")
    assert load_settings({}, {}, (tmp_path / "c.toml",)).dialogue.days == 0
    for bad in ("-1", "soon", "1.5", "9" * 5000):
        with pytest.raises(ConfigError, match="dialogue_days is a whole number not below 0"):
            load_settings({}, {"GPUDIAG_DIALOGUE_DAYS": bad}, ())


# --- trouble ------------------------------------------------------------------------------


def damaged() -> Iterator[tuple[str, bytes]]:
    """What a file may hold that is none of ours."""
    good = gzip.compress(json.dumps({"schema": "gpudiag/dialogue/1", "key": KEY, "saved": 0, "data": {}}).encode())
    yield "empty", b""
    yield "no gzip", b"{}"
    yield "cut off", good[:-9]
    yield "flipped", good[:30] + bytes([good[30] ^ 255]) + good[31:]
    yield "no json", gzip.compress(b"{")
    yield "no object", gzip.compress(b"[]")
    yield "deep", gzip.compress(b"[" * 200_000)
    yield "a bomb", gzip.compress(b" " * (65 << 20))
    yield "no text", gzip.compress(b"\xff\xfe\x00")
    for name, change in (("data", []), ("saved", "x"), ("key", ["other"])):
        body = {"schema": "gpudiag/dialogue/1", "key": KEY, "saved": 0, "data": {}, name: change}
        yield f"bad {name}", gzip.compress(json.dumps(body).encode())


@pytest.mark.parametrize(("name", "content"), list(damaged()), ids=lambda v: v if isinstance(v, str) else "")
def test_a_damaged_file_is_set_aside(tmp_path: Path, name: str, content: bytes) -> None:
    store = Dialogues(tmp_path)
    store.save(KEY, {})
    only(store).write_bytes(content)
    with store.opened(KEY) as memory:
        assert memory.data is None, name
        memory.data = {"n": 1}
    assert store.load(KEY) == {"n": 1}
    assert only(store, ".damaged").read_bytes() == content
    assert [("is damaged" in t.en, "已损坏" in t.zh) for t in store.complaints] == [(True, True)]


def test_a_newer_file_is_set_aside(tmp_path: Path) -> None:
    store = Dialogues(tmp_path)
    store.save(KEY, {})
    only(store).write_bytes(gzip.compress(json.dumps({"schema": "gpudiag/dialogue/2", "talk": 1}).encode()))
    assert store.load(KEY) is None
    assert "another version of gpudiag" in store.complaints[0].en
    assert only(store, ".damaged").exists()


def test_a_folder_that_cannot_be_made_costs_the_memory_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = Dialogues(tmp_path / "file" / "dialogues")
    for _ in range(2):
        with store.opened(KEY) as memory:
            assert memory.data is None
            memory.data = {"n": 1}
    assert not store.save(KEY, {})
    assert ["cannot be written" in t.en for t in store.complaints] == [True], "said once"


READ_ONLY = """
import os, sys
from pathlib import Path
from assistant.session.key import Key
from assistant.session.store import Dialogues
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
store = Dialogues(Path(sys.argv[1]))
with store.opened(Key("cli")) as memory:
    memory.data = {"n": 1}
print(len(store.complaints), "cannot be written" in store.complaints[0].en)
"""


@pytest.mark.process
def test_a_folder_of_somebody_else_costs_the_memory_only(tmp_path: Path) -> None:
    if os.getuid() != 0:
        tmp_path.chmod(0o500)
    one = subprocess.Popen(
        [sys.executable, "-c", READ_ONLY, str(tmp_path / "d")], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    said = one.communicate(timeout=60)
    tmp_path.chmod(0o700)
    assert said == (b"1 True\n", b"")


def test_what_is_too_large_is_not_kept(tmp_path: Path) -> None:
    store = Dialogues(tmp_path)
    store.save(KEY, {"n": 1})
    assert not store.save(KEY, {"pad": "x" * (65 << 20)})
    assert store.load(KEY) == {"n": 1}
    assert "too large" in store.complaints[0].en


def test_a_link_in_the_place_of_a_lock_is_not_followed(tmp_path: Path) -> None:
    store = Dialogues(tmp_path / "d")
    store.folder.mkdir()
    (store.folder / f"{KEY.stem}.json.gz.lock").symlink_to(tmp_path / "elsewhere")
    assert not store.save(KEY, {})
    assert not (tmp_path / "elsewhere").exists()
