"""The parser of the filesystems snapshot: what df, mount(8) and nfsstat would say, and never a value that is not there."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Clock, Observation, Status
from probes.base import Context
from probes.parse.filesystems_snapshot import FIGURES, FORMAT, PROVIDES
from tests.cases import each
from tests.probes.parse.smi_case import CONTEXT, all_of, one, status, value
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

LINE = "43 27 0:52 / /data rw,relatime - nfs4 filer-1:/data rw,vers=4.2,hard"
XPRT = "xprt: tcp 731 0 1 0 0 40 40 0 40 0 2 0 0"
NUMBERS = {
    "frsize": 4096,
    "blocks": 1000,
    "bfree": 400,
    "bavail": 300,
    "files": 100,
    "ffree": 60,
    "favail": 60,
    "flag": 0,
}


def document(**more: Any) -> str:
    plain = {"schema": "gpudiag/filesystems/1", "host": "n7", "at_ns": 5, "table": "/proc/self/mountinfo", "mounts": []}
    return json.dumps(plain | more, indent=1)


def mount(line: str = LINE, answer: Any = NUMBERS, **more: Any) -> list[Observation]:
    got = FORMAT.parse(document(mounts=[{"line": line, "statvfs": answer, **more}]), Context("x"))
    assert_in_vocabulary(got, FORMAT)
    return got


def test_it_is_known_by_its_schema_alone() -> None:
    assert FORMAT.sniff(document()) == 100
    for other in ("", "{}", document().replace("filesystems", "services"), f"seen in a log: {document()}"):
        assert FORMAT.sniff(other) == 0, other


def test_shares_are_reckoned_as_df_does() -> None:
    got = mount()
    assert value(got, "fs.used.share") == 66.67  # 600 used of 900 that anybody but root can ever use
    assert value(got, "fs.inodes.used.share") == 40.0
    assert (value(got, "fs.size"), value(got, "fs.available")) == (3, 1)
    assert (value(got, "fs.state"), value(got, "fs.remote"), value(got, "fs.source")) == ("ok", True, "filer-1:/data")
    found = one(got, "fs.used.share")
    assert (found.subject.host, found.at, found.clock) == ("n7", 5, Clock.REALTIME)
    assert str(found.source) == "statvfs(/data)"


def test_the_host_that_the_caller_knows_counts() -> None:
    assert {o.subject.host for o in FORMAT.parse(document(mounts=[{"line": LINE, "statvfs": NUMBERS}]), CONTEXT)} == {
        "node-a"
    }


@each(
    ("answer", "state", "figures"),
    [
        ({"hung": "statvfs(/data)", "seconds": 1.0}, "hung", Status.TIMEOUT),
        ({"error": "ESTALE: Stale file handle"}, "stale", Status.FAILED),
        ({"error": "ENOTCONN: Transport endpoint is not connected"}, "disconnected", Status.FAILED),
        ({"error": "EIO: Input/output error"}, "io_error", Status.FAILED),
        ({"error": "EACCES: Permission denied"}, Status.DENIED, Status.DENIED),
        ({"error": "ENOENT: No such file or directory"}, Status.UNSUPPORTED, Status.UNSUPPORTED),
        ({"error": "not reached before the deadline"}, Status.TIMEOUT, Status.TIMEOUT),
        ({"error": "EFOO: never heard of"}, Status.FAILED, Status.FAILED),
    ],
)
def test_what_does_not_answer_has_no_figures(answer: Any, state: str | Status, figures: Status) -> None:
    got = mount(answer=answer)
    found = one(got, "fs.state")
    assert (found.value if found.status is Status.OK else found.status) == state
    assert {status(got, fact) for fact in FIGURES} == {figures}
    if figures is Status.DENIED:
        assert "sudo" in found.detail


@each(
    ("own", "shared", "read_only", "turned"),
    [
        ("rw", "rw", False, False), ("ro", "rw", True, False), ("ro", "ro", True, False), ("rw", "ro", True, True),
        ("rw", "rw,emergency_ro", True, True),
    ],
)  # fmt: skip
def test_who_made_it_read_only(own: str, shared: str, read_only: bool, turned: bool) -> None:
    got = mount(f"27 1 254:0 / / {own},relatime - ext4 /dev/vda {shared}", errors_count="3")
    assert (value(got, "fs.read_only"), value(got, "fs.turned_read_only")) == (read_only, turned)
    assert value(got, "fs.errors") == 3


def test_a_server_that_serves_read_only_did_not_turn() -> None:
    assert value(mount("43 27 0:52 / /data rw - nfs4 filer-1:/data ro"), "fs.turned_read_only") is False


def test_without_size_or_inodes_there_is_no_share() -> None:
    got = mount(answer=NUMBERS | {"blocks": 0, "bfree": 0, "bavail": 0, "files": 0, "ffree": 0, "favail": 0})
    assert {status(got, fact) for fact in FIGURES} == {Status.NOT_APPLICABLE}


def test_names_are_shown_as_people_write_them() -> None:
    got = mount("43 27 0:52 / /my\\040data\\012\\033[31m rw - ext4 /dev/x rw")
    assert {o.subject.id for o in got} == {"/my data"}


def nfs(first: list[str], second: list[str], **more: Any) -> list[Observation]:
    records = [{"mount": "/data", "seconds": 0.5, "first": first, "second": second, **more}]
    got = FORMAT.parse(document(nfs=records), Context("x"))
    assert_in_vocabulary(got, FORMAT)
    return got


def test_requests_that_were_sent_again_are_counted_over_all_operations() -> None:
    tail = " 1000 2000 10 20 30 0"
    got = nfs(
        ["age: 5000", "xprt: tcp 0 0 2 0 10 5 5 0 5 0 2 0 0", f"READ: 100 103 1{tail}", f"WRITE: 50 50 0{tail}"],
        [f"READ: 110 115 1{tail}", f"WRITE: 50 52 1{tail}"],
    )
    assert [value(got, f"fs.rpc.{name}") for name in ("requests", "retransmissions", "timeouts")] == [160, 7, 2]
    assert value(got, "fs.rpc.retransmissions.recent") == 4
    assert value(got, "fs.rpc.timeouts.recent") == 1
    assert value(got, "fs.rpc.retransmissions.share") == 4.38


def test_one_reading_tells_no_growth_and_none_tells_nothing() -> None:
    got = nfs(["READ: 100 103 1 1000 2000 10 20 30 0"], [])
    assert value(got, "fs.rpc.retransmissions") == 3
    assert status(got, "fs.rpc.retransmissions.recent") is Status.FAILED
    assert {o.status for o in nfs([], [])} == {Status.FAILED}


def lustre(*files: tuple[str, str]) -> list[Observation]:
    records = [{"path": path, "text": text} for path, text in files]
    got = FORMAT.parse(document(lustre=records), Context("x"))
    assert_in_vocabulary(got, FORMAT)
    return got


def test_lustre_tells_the_state_of_each_target() -> None:
    where = "/proc/fs/lustre/osc/scratch-OST0003-osc-ffff8881a2b3c000"
    got = lustre(
        (f"{where}/import", "import:\n    target: scratch-OST0003_UUID\n    state: DISCONN\n"),
        (
            f"{where}/state",
            "current_state: DISCONN\nstate_history:\n - [ 17, EVICTED ]\n - [ 18, FULL ]\n - [ 19, EVICTED ]\n",
        ),
        (f"{where.replace('/proc/fs', '/sys/kernel/debug')}/import", "import:\n    state: FULL\n"),
    )
    assert value(got, "fs.target.state", "scratch-OST0003") == "disconnected"
    assert value(got, "fs.target.evictions", "scratch-OST0003") == 2


def test_lustre_without_targets_may_not_be_read_by_everybody() -> None:
    found = one(mount("43 27 0:60 / /scratch rw - lustre mgs@o2ib:/scratch rw,flock"), "fs.target.state")
    assert (found.status, "sudo" in found.detail) == (Status.DENIED, True)


def test_a_private_fuse_mount_is_no_matter_of_privilege() -> None:
    found = one(
        mount("43 27 0:60 / /home/eve/s3 rw - fuse.sshfs x:/ rw", {"error": "EACCES: Permission denied"}), "fs.state"
    )
    assert (found.status, "allow_other" in found.detail, "sudo" in found.detail) == (Status.DENIED, True, False)


def test_a_state_that_nobody_knows_is_not_understood() -> None:
    assert status(
        lustre(("/proc/fs/lustre/mdc/a-MDT0000-mdc-ffff8881a2b3c000/import", "state: WOBBLY\n")), "fs.target.state"
    ) is (Status.FAILED)


@each("text", ["", "{", '{"schema": "gpudiag/filesystems/1"', "[]"])
def test_a_document_that_is_cut_is_a_failure(text: str) -> None:
    got = FORMAT.parse(text, CONTEXT)
    assert [o.status for o in got] == [Status.FAILED]
    assert_in_vocabulary(got, FORMAT)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["line", "statvfs", "mount", "first", "path", "text",
                                                                               "error", "hung", "blocks", "flag"]), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@given(JSON, JSON, JSON, st.text(max_size=60))
def test_whatever_stands_in_the_document_it_is_told_in_the_vocabulary(
    mounts: Any, nfs: Any, lustre: Any, line: str
) -> None:
    records = [{"line": LINE, "statvfs": mounts}, {"line": line, "statvfs": NUMBERS}]
    for content in (records, mounts):
        got = FORMAT.parse(
            document(mounts=content, nfs=[nfs], lustre=[lustre, {"path": "/a/b/c/import", "text": line}]), CONTEXT
        )
        assert_in_vocabulary(got, FORMAT)


@given(st.integers(1, 2**40), st.integers(0, 2**40), st.integers(0, 2**40))
def test_a_share_is_between_0_and_100(blocks: int, free: int, reserved: int) -> None:
    left = max(0, free - reserved)
    got = mount(answer=NUMBERS | {"blocks": max(blocks, free), "bfree": free, "bavail": left})
    for found in all_of(got, "fs.used.share"):
        if found.status is Status.OK:
            assert isinstance(found.value, float)
            assert 0 <= found.value <= 100
            assert (left == 0) >= (found.value == 100.0) or found.value > 99.99


def test_every_fact_is_told_of_somewhere() -> None:
    text = document(
        mounts=[{"line": LINE, "statvfs": NUMBERS, "errors_count": "0"}],
        disks={"seconds": 0.5, "devices": {"0:52": ["0 52 vdb 1 0 8 1 1 0 8 1 0 1 2", "0 52 vdb 2 0 8 2 2 0 8 2 0 2 4"]}},
        nfs=[{"mount": "/data", "first": [XPRT, "READ: 1 1 0 1 1 1 1 1 0"], "second": [XPRT, "READ: 1 1 0 1 1 1 1 1 0"]}],
        lustre=[{"path": "/a/osc/b/import", "text": "state: FULL"}, {"path": "/a/osc/b/state", "text": ""},
                *({"path": f"/a/osc/b/{name}", "text": "7"} for name in ("kbytestotal", "kbytesavail", "active"))],
    )  # fmt: skip
    assert {o.fact for o in FORMAT.parse(text, CONTEXT)} == set(PROVIDES)
