"""Replies say what they are, recordings answer only what they hold, and long output keeps both ends."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Status
from probes.host import CallKind, Host, RecordingHost, ReplayHost, Reply, capped, not_asked


def command(*argv: str, data: bytes = b"") -> Reply:
    return Reply(CallKind.COMMAND, argv, data=data, exit_code=0)


def file(path: str, status: Status = Status.OK) -> Reply:
    return Reply(CallKind.FILE, (path,), status)


@pytest.mark.parametrize("status", [Status.NONE_SEEN, Status.NOT_APPLICABLE, Status.STALE])
def test_a_reply_draws_no_conclusions(status: Status) -> None:
    with pytest.raises(ValueError, match=str(status)):
        file("/var/log/messages", status)


def test_a_call_that_was_not_made_has_no_output() -> None:
    with pytest.raises(ValueError, match="not made"):
        Reply(CallKind.COMMAND, ("dmesg",), Status.NOT_ASKED, stderr=b"x")


@pytest.mark.parametrize(("kind", "call"), [(CallKind.COMMAND, ()), (CallKind.FILE, ()), (CallKind.FILE, ("a", "b"))])
def test_a_call_names_something(kind: CallKind, call: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="cannot be asked"):
        Reply(kind, call)


def test_titles_are_what_people_type_without_what_terminals_obey() -> None:
    assert command("grep", "Xid 79", "/var/log/messages").title == "grep 'Xid 79' /var/log/messages"
    assert file("/tmp/\x1b[31mred").title == "/tmp/red"
    assert file("/tmp/a\nb").title == "/tmp/a\\nb"


@pytest.mark.parametrize(
    ("reply", "whole"),
    [
        (command("dmesg"), True),
        (file("/a"), True),
        (Reply(CallKind.COMMAND, ("dmesg",), exit_code=1), False),
        (Reply(CallKind.COMMAND, ("dmesg",), exit_code=-9), False),
        (Reply(CallKind.COMMAND, ("dmesg",), Status.TIMEOUT), False),
        (Reply(CallKind.FILE, ("/a",), cut=True), False),
    ],
)
def test_whole_output_is_told_from_the_rest(reply: Reply, whole: bool) -> None:
    assert reply.whole is whole


def test_what_was_not_recorded_was_not_asked_and_names_the_call() -> None:
    host: Host = ReplayHost("n1", [command("nvidia-smi", "-q")])
    assert host.run(["nvidia-smi", "-q"], deadline=1).status is Status.OK
    for reply in (host.run(["nvidia-smi"], deadline=1), host.read("nvidia-smi -q")):
        assert reply.status is Status.NOT_ASKED
        assert reply.title in reply.detail
        assert (reply.data, reply.exit_code) == (b"", None)


def test_two_replies_to_one_call_are_a_contradiction() -> None:
    with pytest.raises(ValueError, match="dmesg has two replies"):
        ReplayHost("n1", [command("dmesg", data=b"a"), command("dmesg", data=b"b")])


def test_a_listing_names_the_files_that_were_read() -> None:
    names = ["/var/log/kern.log", "/var/log/kern.log.1", "/var/log/old/kern.log"]
    host = ReplayHost(
        "n1", [*map(file, names), file("/var/log/kern.log.2", Status.DENIED), command("/var/log/kern.log.3")]
    )
    assert host.files("/var/log/kern.log*") == [*names[:2], "/var/log/kern.log.2"]  # that it was denied is its reply
    assert host.files("") == []


class Counting(ReplayHost):
    """A host whose answers change each time they are asked for."""

    asked = 0

    def run(self, argv: Sequence[str], *, deadline: float) -> Reply:
        self.asked += 1
        return command(*argv, data=str(self.asked).encode())


def test_a_recording_asks_once_and_replays_what_was_said() -> None:
    inner = Counting("n1", [file("/a")], as_of=5)
    host = RecordingHost(inner)
    first = host.run(["uptime"], deadline=1)
    assert host.run(("uptime",), deadline=9) == first
    assert inner.asked == 1
    assert host.read("/b") == not_asked(CallKind.FILE, ("/b",))
    host.read("/a")
    replay = ReplayHost(host.name, host.replies, host.as_of)
    assert (replay.name, replay.as_of) == ("n1", 5)
    assert replay.run(["uptime"], deadline=1) == first
    assert [r.title for r in host.replies] == ["uptime", "/a", "/b"]


@given(st.lists(st.binary(max_size=30)).map(b"\n".join), st.integers(2, 200))
def test_both_ends_of_long_output_are_kept(data: bytes, limit: int) -> None:
    reply = capped(command("x", data=data), limit)
    if len(data) <= limit:
        assert reply == command("x", data=data)
        return
    assert reply.cut
    assert not reply.whole
    head, said, tail = reply.data.partition(b"[gpudiag: ")
    number, _, tail = tail.partition(b" bytes in the middle were left out]\n")
    assert said
    assert reply.detail.startswith(f"{int(number)} bytes")
    added = int(len(head) + int(number) + len(tail) != len(data))  # a line break ahead of the joint
    head = head[: len(head) - added]
    assert data.startswith(head)
    assert data.endswith(tail)
    assert len(head) + int(number) + len(tail) == len(data)
    assert len(head) + len(tail) <= limit
