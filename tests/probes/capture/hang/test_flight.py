"""Flight recorders: dumps of both forms, what they say together, pipes; real ones of torch, and hostile ones."""

from __future__ import annotations

import json
import os
import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.errors import InputError
from probes.capture.hang import flight, flight_files
from probes.capture.model import Process, Target
from tests.live_jobs import Ranks

CAPTURES = Path(__file__).parents[3] / "captures/flight"
NCCL = ("0", "default_pg")


def entry(seq: int, name: str = "nccl:all_reduce", state: str = "completed", **other: Any) -> dict[str, Any]:
    """An entry as the recorder of torch 2.5 to 2.13 writes it."""
    return {
        "frames": [{"name": "all_reduce", "filename": "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", "line": 2501},
                   {"name": "train_step", "filename": "/work/train.py", "line": 42}],
        "record_id": seq, "pg_id": 0, "process_group": NCCL, "collective_seq_id": seq, "p2p_seq_id": 0, "op_id": seq,
        "profiling_name": name, "time_created_ns": 1_795_000_000_000_000_000 + seq, "input_sizes": [[3, 4]], "input_dtypes": ["Float"],
        "output_sizes": [[3, 4]], "output_dtypes": ["Float"], "state": state, "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None, "retired": state == "completed", "timeout_ms": 600_000, "is_p2p": False,
    } | other  # fmt: skip


def dump(*entries: dict[str, Any], ranks: str = "[0, 1, 2, 3]", enqueued: int = -1) -> dict[str, Any]:
    return {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}},
            "pg_status": {"0": {"last_enqueued_collective": enqueued, "last_started_collective": -1, "last_completed_collective": -1}},
            "entries": list(entries)}  # fmt: skip


def loaded(raw: object) -> dict[str, Any]:
    """Through both forms, which must say the same."""
    found = flight_files.load(pickle.dumps(raw, protocol=2))
    assert flight_files.load(json.dumps(raw).encode()) == found
    return found


def test_a_rank_that_has_not_come_is_missing() -> None:
    waiting = loaded(dump(entry(1), entry(2), entry(3, state="started")))
    late = loaded(dump(entry(1), entry(2)))
    found = flight.analyse({0: waiting, 1: waiting, 2: late, 3: waiting}, world=4)
    (stuck,) = found.stuck
    assert (stuck.seq, stuck.collective, stuck.state) == (3, "all_reduce", "started")
    assert (stuck.entered, stuck.missing, stuck.silent) == ((0, 1, 3), (2,), ())
    assert stuck.called == "train_step (train.py:42)"
    assert found.guilty == (2,)


def test_a_rank_without_a_dump_is_silent_and_not_missing() -> None:
    waiting = loaded(dump(entry(7, state="scheduled")))
    (stuck,) = flight.analyse({0: waiting, 1: waiting, 2: waiting}, world=4).stuck
    assert (stuck.missing, stuck.silent) == ((), (3,))


def test_what_left_the_ring_is_known_by_the_status() -> None:
    other = ("1", "tp")
    ring = loaded(dump(entry(9, process_group=other, pg_id=1, collective_seq_id=4), enqueued=3))
    waiting = loaded(dump(entry(3, state="scheduled"), enqueued=3))
    (stuck,) = (s for s in flight.analyse({0: waiting, 1: ring, 2: waiting, 3: waiting}).stuck if s.group == "0")
    assert stuck.missing == ()


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (entry(2, "nccl:all_gather", "started"), "collective"),
        (entry(2, state="started", input_dtypes=["BFloat16"], output_dtypes=["BFloat16"]), "type"),
        (entry(2, state="started", input_sizes=[[3, 5]], output_sizes=[[3, 5]]), "size"),
    ],
)
def test_ranks_that_do_not_agree(other: dict[str, Any], what: str) -> None:
    usual = loaded(dump(entry(1), entry(2, state="started"), ranks="[0, 1]"))
    (stuck,) = flight.analyse({0: usual, 1: loaded(dump(entry(1), other, ranks="[0, 1]"))}).stuck
    assert stuck.mismatch == what
    assert sorted(r for ranks in stuck.differing.values() for r in ranks) == [0, 1]


def test_uneven_sizes_are_no_fault_in_all_to_all() -> None:
    one, other = (dump(entry(1, "nccl:all_to_all", "started", input_sizes=[[n]]), ranks="[0, 1]") for n in (3, 4))
    assert flight.analyse({0: loaded(one), 1: loaded(other)}).stuck[0].mismatch == ""


def test_who_waits_for_another_group_is_held_up_itself() -> None:
    tp, dp = ("1", "tp"), ("2", "dp")
    a = loaded(dump(entry(1, process_group=dp, state="started")))
    b = loaded(dump(entry(1, process_group=tp, state="started")))
    c = loaded(dump(entry(5)))
    groups = {"1": {"desc": "tp", "ranks": [1, 2]}, "2": {"desc": "dp", "ranks": [0, 1]}}
    found = flight.analyse({0: a | {"groups": groups}, 1: b | {"groups": groups}, 2: c | {"groups": groups}})
    assert [s.group for s in found.stuck] == ["tp", "dp"]
    assert found.guilty == (2,)


def test_real_dumps_of_ranks_in_different_groups() -> None:
    dumps = {r: flight_files.load((CAPTURES / f"desync_{r}.json").read_bytes()) for r in (0, 1)}
    found = flight.analyse(dumps, world=2)
    assert {(s.collective, s.entered, s.missing) for s in found.stuck} == {
        ("all_gather", (1,), (0,)),
        ("all_reduce", (0,), (1,)),
    }
    assert found.guilty == ()


@pytest.mark.machine
def test_real_dumps_of_torch_in_both_forms() -> None:
    with Ranks("--hang", "1", "--hang-after", "6") as job:
        code = "import os, torch._C._distributed_c10d as d; f = os.environ['TMPDIR']; " \
               "open(f + '/fr.pickle', 'wb').write(d._dump_fr_trace()); open(f + '/fr.json', 'wb').write(d._dump_fr_trace_json())"  # fmt: skip
        job.jobs[1].wait("hung")
        job.jobs[1].execute(code)
        pickled, written = job.jobs[1].folder / "fr.pickle", job.jobs[1].folder / "fr.json"
        until = time.monotonic() + 30
        while not (written.exists() and written.stat().st_size) and time.monotonic() < until:
            time.sleep(0.1)
        one, other = flight_files.load(pickled.read_bytes()), flight_files.load(written.read_bytes())
        assert one["entries"]
        assert one["status"] == other["status"]
        assert all(e["name"] == "gloo:all_reduce" and e["state"] == "completed" for e in one["entries"])
        assert [e | {"frames": []} for e in one["entries"]] == other["entries"]
        assert any(f[0] == "average_gradients" for f in one["entries"][-1]["frames"])


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, ("touch /tmp/never",))


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]x", b"{}", b'{"a": 1}', b"\x80\x02}q\x00.", pickle.dumps(_Evil(), 2), pickle.dumps({"entries": [_Evil()]}, 2),
     b"\x80\x02]q\x00(h\x00h\x00e.", b"\x80\x04\x95", b"\x00" * 64, b"[" * 100_000],
)  # fmt: skip
def test_what_is_no_dump_is_refused(data: bytes) -> None:
    with pytest.raises(InputError):
        flight_files.load(data)


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.text(max_size=5), lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x, max_size=3)
)  # fmt: skip
fields = st.sampled_from(list(entry(1)))


@pytest.mark.slow
@given(
    st.dictionaries(st.integers(0, 5), st.lists(st.dictionaries(fields, anything), max_size=3), max_size=3), anything
)
def test_hostile_dumps_never_raise(entries: dict[int, list[Any]], config: Any) -> None:
    dumps = {}
    for rank, rows in entries.items():
        raw = {"entries": [entry(1, state="started") | row for row in rows], "pg_config": config, "pg_status": config}
        dumps[rank] = flight_files.load(json.dumps(raw).encode())
    flight.analyse(dumps, world=3)
    flight.of_part({"ranks": {str(r): {"dump": d} for r, d in dumps.items()}})
    flight.of_part({"ranks": config})


@given(st.permutations(range(4)), st.integers(1, 5), st.sets(st.integers(0, 3), min_size=1, max_size=3))
def test_names_of_ranks_do_not_matter(order: list[int], seq: int, late: set[int]) -> None:
    waiting = flight_files.load(
        json.dumps(dump(*(entry(i) for i in range(1, seq)), entry(seq, state="started"))).encode()
    )
    behind = flight_files.load(json.dumps(dump(*(entry(i) for i in range(1, seq)))).encode())
    (stuck,) = flight.analyse({order[i]: behind if i in late else waiting for i in range(4)}).stuck
    assert stuck.missing == tuple(sorted(order[i] for i in late))
    assert stuck.seq == seq


def test_where_a_recorder_listens_and_writes() -> None:
    usual = flight_files.places({"HOME": "/root"}, 3)
    assert (usual.pipe, usual.on) == ("", None)
    assert usual.files == (
        "/root/.cache/torch/comm_lib_trace_rank_3",
        "/root/.cache/torch/nccl_trace_rank_3",
        "/tmp/nccl_trace_rank_3",
    )
    told = {
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": "/run/p_",
        "TORCH_FR_DUMP_TEMP_FILE": "/run/d_",
        "TORCH_FR_BUFFER_SIZE": "2000",
    }
    assert flight_files.places(told, 12) == flight_files.Places("/run/p_12.pipe", ("/run/d_12",), on=True)
    assert flight_files.places({"TORCH_NCCL_TRACE_BUFFER_SIZE": "0"}, 0).on is False


# --- a job that answers: this process plays it, with the environment of a child -----------------------


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[tuple[Target, Path]]:
    """A process that was started with a recorder, whose pipe a thread of ours serves."""
    import subprocess

    env = os.environ | {"RANK": "0", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": f"{tmp_path}/pipe_", "TORCH_FR_DUMP_TEMP_FILE": f"{tmp_path}/dump_",
                        "TORCH_FR_BUFFER_SIZE": "100"}  # fmt: skip
    with subprocess.Popen(["sleep", "60"], env=env) as child:
        try:
            until = time.monotonic() + 10
            while Path(f"/proc/{child.pid}/comm").read_text() != "sleep\n" and time.monotonic() < until:
                time.sleep(0.01)
            yield Target(Process(child.pid, 0, "sleep", uid=os.geteuid()), 0, 0, 1, "job"), tmp_path
        finally:
            child.kill()


@pytest.mark.process
def test_a_job_is_asked_only_with_consent(listener: tuple[Target, Path]) -> None:
    target, folder = listener
    os.mkfifo(folder / "pipe_0.pipe")
    end = os.open(folder / "pipe_0.pipe", os.O_RDONLY | os.O_NONBLOCK)
    stop = threading.Event()

    def serve() -> None:
        while not stop.wait(0.05):
            if os.read(end, 128):
                (folder / "dump_0").write_bytes(pickle.dumps(dump(entry(4, state="started")), 2))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        quiet = flight_files.gather([target])
        assert quiet["ranks"]["0"]["error"] == "no dump lies there"
        assert not (folder / "dump_0").exists()
        found = flight_files.gather([target], ask=True, wait=20)
        assert found["ranks"]["0"]["asked"] == "written"
        assert found["ranks"]["0"]["error"] == ""
        assert flight.of_part(json.loads(json.dumps(found)), world=4).stuck[0].seq == 4
    finally:
        stop.set()
        thread.join()
        os.close(end)


@pytest.mark.process
@pytest.mark.parametrize("kind", ["file", "link", "nobody", "absent"])
def test_what_only_looks_like_the_pipe_is_left_alone(listener: tuple[Target, Path], kind: str) -> None:
    target, folder = listener
    pipe, victim = folder / "pipe_0.pipe", folder / "victim"
    victim.write_text("precious")
    if kind == "file":
        pipe.write_text("precious")
    elif kind == "link":
        pipe.symlink_to(victim)
    elif kind == "nobody":
        os.mkfifo(pipe)
    found = flight_files.gather([target], ask=True, wait=0.1)["ranks"]["0"]
    assert found["asked"] != "written"
    assert victim.read_text() == "precious"
    assert kind != "file" or pipe.read_text() == "precious"


@pytest.mark.process
def test_a_dump_of_an_earlier_job_does_not_count(listener: tuple[Target, Path]) -> None:
    target, folder = listener
    (folder / "dump_0").write_bytes(pickle.dumps(dump(entry(1)), 2))
    os.utime(folder / "dump_0", (1_000_000_000, 1_000_000_000))
    start = int(Path(f"/proc/{target.process.pid}/stat").read_text().rpartition(")")[2].split()[19])
    known = Target(Process(target.process.pid, start, "sleep", uid=os.geteuid()), 0, 0, 1, "job")
    assert flight_files.gather([known])["ranks"]["0"]["error"] == "the dump is older than the process"


@pytest.mark.process
def test_a_dump_that_is_a_device_or_damaged_is_said(listener: tuple[Target, Path]) -> None:
    target, folder = listener
    (folder / "dump_0").write_bytes(b"\x80\x02cos\nsystem\n.")
    row = flight_files.gather([target])["ranks"]["0"]
    assert "plain data" in row["error"]
    (folder / "dump_0").unlink()
    (folder / "dump_0").symlink_to("/dev/zero")
    row = flight_files.gather([target])["ranks"]["0"]
    assert "dump" not in row
    assert "no file of the job's" in row["error"]
    (folder / "dump_0").unlink()
    (folder / "dump_0").mkdir()
    assert "no file of the job's" in flight_files.gather([target])["ranks"]["0"]["error"]
