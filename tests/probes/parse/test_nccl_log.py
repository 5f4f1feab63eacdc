"""Stories of NCCL logs: who complained about whom, who timed out, who lagged."""

from __future__ import annotations

from pathlib import Path

from knowledge.observation import Event, Observation, Scope, Status, Subject, node
from probes.base import Context, lines_of
from probes.parse import nccl_log
from tests.cases import each

CAPTURES = Path(__file__).parents[2] / "captures" / "app"
DOCUMENT = Subject(Scope.DOCUMENT, "job.log", node())


def read(text: str) -> list[Observation]:
    return nccl_log.parse(lines_of(text), Context("job.log"))


def events(found: list[Observation], name: str) -> list[tuple[Subject, Event]]:
    return [(o.subject, o.value) for o in found if o.fact == name and isinstance(o.value, Event)]


def values(found: list[Observation]) -> dict[str, object]:
    return {o.fact: o.value for o in found if o.status is Status.OK and not isinstance(o.value, Event)}


def one(text: str) -> Event:
    [(_, event)] = events(read(text), "nccl_error")
    return event


def warn(message: str) -> str:
    return f"gpu-7:100:200 [3] transport/x.cc:12 NCCL WARN {message}"


COMPLETION = (
    "NET/IB: Got completion from peer 10.30.0.13<40554> with {status} localGid ::ffff:10.30.2.2 "
    "remoteGids::ffff:10.30.1.4 hca mlx5_1"
)


@each(
    ("message", "fields"),
    [
        (
            COMPLETION.format(status="status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(1) vendor_err=129"),
            {"kind": "ib_completion", "wc_status": 12, "wc_name": "RETRY_EXC_ERR", "opcode": 1, "vendor_err": 129,
             "peer": "10.30.0.13", "peer_port": 40554, "hca": "mlx5_1", "same_24": False},
        ),
        (
            COMPLETION.format(status="status=4 opcode=32614 len=32614 vendor err 81 (Send)").replace("2.2", "1.2"),
            {"wc_status": 4, "wc_name": "LOC_PROT_ERR", "vendor_err": 81, "direction": "send", "same_24": True},
        ),
        ("NET/IB : Got completion with error 10, opcode 0, len 0, vendor err 136", {"wc_status": 10, "wc_name": "REM_ACCESS_ERR"}),
        ("NET/IB : Got completion from peer 1.2.3.4<5> with error 5, opcode 1", {"wc_status": 5, "wc_name": "WR_FLUSH_ERR"}),
        ("socketPollConnect: Connect to 10.0.0.4<56> returned 113(No route to host) errno 115(Operation now in progress)",
         {"kind": "no_route", "errno": 113, "peer": "10.0.0.4"}),
        ("Connect to fe80::1%eth0<5001> failed : Connection refused", {"kind": "socket_refused", "errno": 111, "peer": "fe80::1%eth0"}),
        ("Net : Call to recv from 10.1.1.1<39501> failed : Connection reset by peer", {"kind": "connection_reset", "peer_port": 39501}),
        ("socketStartConnect: Connect to 172.17.0.2<4> failed : Software caused connection abort", {"kind": "connection_aborted"}),
        ("socketStartConnect: exceeded retries (20000)", {"kind": "connection_timeout"}),
        ("Connect to 10.0.0.1<2> failed : Network is unreachable", {"kind": "network_unreachable"}),
        ("Call to bind failed : Cannot assign requested address", {"kind": "address_not_available"}),
        ("socketProgress: Connection closed by remote peer gpu-2.example.net<41670>", {"kind": "connection_closed", "peer": "gpu-2.example.net"}),
        ("Error: failed to extend /dev/shm/nccl-Ab to 4194660 bytes, error: No space left on device (28)",
         {"kind": "shm_no_space", "size": 4194660, "errno": 28, "shm_file": "/dev/shm/nccl-Ab"}),
        ("Error: failed to open /dev/shm/nccl-Ab, error: No such file or directory (2)", {"kind": "shm_not_shared", "shm_file": "/dev/shm/nccl-Ab"}),
        ("Error while attaching to shared memory segment /dev/shm/nccl-Ab (size 9637888), error: No such file or directory (2)",
         {"kind": "shm_not_shared", "errno": 2}),
        ("Error while creating shared memory segment /dev/shm/nccl-Ab (size 33030528)", {"kind": "shm_no_space", "size": 33030528}),
        ("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1a000", {"kind": "duplicate_gpu", "ranks": "1,0", "cuda_device": "1a000"}),
        ("Mismatched NCCL version detected : rank 1 using version 21803", {"kind": "version_mismatch"}),
        ("Cuda failure 'out of memory'", {"kind": "cuda_failure", "cuda_kind": "out_of_memory", "cuda_code": 2}),
        ("Cuda failure 700 'an illegal memory access was encountered'", {"kind": "cuda_failure", "cuda_kind": "illegal_access"}),
        ("Bootstrap : no socket interface found", {"kind": "no_interface"}),
        ("Bootstrap Root : mismatch in rank count from procs 16 : 8", {"kind": "rank_count_mismatch"}),
        ("Call to ibv_reg_mr failed with error Cannot allocate memory errno 12", {"kind": "ib_verbs", "api": "ibv_reg_mr", "errno": 12}),
        ("NET/IB : mlx5_3:1 Got async event : port error", {"kind": "ib_async_event", "hca": "mlx5_3"}),
        ("nvmlDeviceGetHandleByPciBusId() failed: GPU is lost", {"kind": "nvml"}),
        ("Something that nobody has written down", {"kind": "other"}),
    ],
)  # fmt: skip
def test_a_warning_tells_its_kind_and_its_peer(message: str, fields: dict[str, object]) -> None:
    event = one(warn(message))
    assert {name: event.get(name) for name in fields} == fields
    assert (event.get("host"), event.get("pid")) == ("gpu-7", 100)
    assert (event.get("file"), event.get("line_in_source")) == ("transport/x.cc", 12)


def test_the_unwinding_lines_of_the_same_process_tell_the_result() -> None:
    other = "gpu-7:999:1 [0] NCCL INFO init.cc:1 -> 3"
    event = one(
        f"{warn('Connect to 1.2.3.4<5> failed : Connection refused')}\n{other}\ngpu-7:100:9 [3] NCCL INFO a.cc:2 -> 2"
    )
    assert (event.code, event.get("result")) == (2, "ncclSystemError")


def test_a_thousand_copies_are_one_event_with_a_count() -> None:
    line = warn("socketProgress: Connection closed by remote peer gpu-2<4>")
    assert one("\n".join([line] * 1000)).get("count") == 1000


def test_information_is_no_error() -> None:
    found = read("gpu-7:1:1 [0] NCCL INFO Channel 00/02 : 0 1\ngpu-7:1:1 [0] NCCL INFO Launch mode Parallel")
    assert not events(found, "nccl_error")
    assert [o.fact for o in found if o.status is Status.NONE_SEEN] == [
        "nccl_error",
        "nccl_watchdog_timeout",
        "nccl_desync",
    ]


def test_a_kernel_log_gives_no_answer_about_nccl() -> None:
    assert read("[  1.0] NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen off the bus.\n[rank0]: x") == []


def test_pytorch_wraps_the_message_of_nccl() -> None:
    event = one(
        "[rank1]: torch.distributed.DistBackendError: NCCL error in: /b/ProcessGroupNCCL.cpp:1275, unhandled cuda error, NCCL version 2.18.1\n"
        "[rank1]: ncclUnhandledCudaError: Call to CUDA function failed.\n[rank1]: Last error:\n[rank1]: Cuda failure 'out of memory'\n"
    )
    assert (event.code, event.get("kind"), event.get("cuda_kind"), event.get("version")) == (
        1,
        "cuda_failure",
        "out_of_memory",
        "2.18.1",
    )


def test_a_message_that_pytorch_repeats_is_told_once() -> None:
    message = "Connect to 10.0.0.4<5> failed : Connection refused"
    event = one(
        f"{warn(message)}\n[rank4]: RuntimeError: NCCL error in: /b/P.cpp:1, unhandled system error, NCCL version 2.19.3\n"
        f"[rank4]: ncclSystemError: System call failed.\n[rank4]: Last error:\n[rank4]: {message}\n"
    )
    assert (event.code, event.get("rank"), event.get("version"), event.get("kind")) == (
        2,
        4,
        "2.19.3",
        "socket_refused",
    )


def test_one_rank_behind_the_others() -> None:
    found = read((CAPTURES / "nccl.one-rank-behind.log").read_text())
    told = values(found)
    assert told["job.nccl.timeout.ranks"] == 2
    assert told["job.nccl.timeout.same_seq"] is False
    assert told["job.nccl.timeout.min_seq_rank"] == ("2",)
    assert told["job.nccl.timeout.missing_ranks"] == ("1", "3")
    assert told["job.nccl.timeout.ops"] == ("ALLREDUCE", "_ALLGATHER_BASE")
    assert told["job.ranks"] == 4
    assert told["job.nccl.flight_recorder"] is False
    assert told["job.nccl.env"] == ("NCCL_IB_HCA=mlx5_0,mlx5_1",)
    first = events(found, "nccl_watchdog_timeout")[0]
    assert first[0] == Subject(Scope.RANK, "0", DOCUMENT)
    assert (first[1].get("seq"), first[1].get("last_enqueued"), first[1].get("last_completed")) == (812, 815, 811)
    relations = {(o.subject.id, o.fact): o.value for o in found if o.fact.startswith("rank.")}
    assert relations["2", "rank.uses_gpu"] == "gpu:0001:18:00.0"
    assert relations["2", "rank.on_node"] == "node:gpu-a2"
    assert relations["0", "rank.is_process"] == "process:4101"


STOP = (
    "[rank{rank}]:[E321 02:07:08.408271257 P.cpp:607] [Rank {rank}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600060 milliseconds before timing out."
)


def test_all_ranks_at_the_same_collective() -> None:
    told = values(read("\n".join(STOP.format(rank=r, seq=1580) for r in range(4))))
    assert told["job.nccl.timeout.same_seq"] is True
    assert "job.nccl.timeout.min_seq_rank" not in told


def test_one_rank_alone_says_nothing_about_sameness() -> None:
    assert "job.nccl.timeout.same_seq" not in values(read(STOP.format(rank=0, seq=7)))


def test_without_a_world_size_missing_ranks_are_not_known() -> None:
    [missing] = [o for o in read(STOP.format(rank=0, seq=7)) if o.fact == "job.nccl.timeout.missing_ranks"]
    assert missing.status is Status.UNSUPPORTED
    assert missing.detail


def test_ranks_between_those_that_reported_are_missing_where_most_did() -> None:
    def missing(*ranks: int) -> object:
        return values(read("\n".join(STOP.format(rank=r, seq=7) for r in ranks))).get("job.nccl.timeout.missing_ranks")

    assert missing(1, 2, 3, 5, 6, 7) == ("0", "4")
    assert missing(0, 1, 2, 3) is None, "whether there are more is not known"
    assert missing(0, 8, 16, 24) is None, "a process group of its own"


def test_a_rank_that_only_prints_its_status_counts_beside_timeouts() -> None:
    status = "[rank3]:[E321 02:07:08.4 P.cpp:1664] [PG 1 Rank 3] Exception (either an error or timeout) detected by watchdog at work: 9, last enqueued NCCL work: 12, last completed NCCL work: 8."
    assert values(read(f"{STOP.format(rank=0, seq=9)}\n{status}"))["job.nccl.timeout.ranks"] == 2
    assert not events(read(status), "nccl_watchdog_timeout")


@each(
    ("line", "fields"),
    [
        ("     [1] finished collective #2, but didn't join collective #3 (count from 1)", {"state": "not_joined", "ranks": "1", "seq": 3}),
        ("   - [0, 4] joined but didn't finish collective #39 (count from 1)", {"state": "not_finished", "ranks": "0,4", "seq": 39}),
        (" - To our best knowledge, ranks [47] are the lagging ranks that caused this timeout. They never joined any collectives",
         {"state": "never_joined", "ranks": "47"}),
        ("RuntimeError: Ranks 1,2 failed to pass monitoredBarrier in 9000 ms", {"state": "monitored_barrier", "ranks": "1,2", "timeout_ms": 9000}),
        ("RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=5, OpType=ALLREDUCE, "
         "TensorShape=[10]), but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=5, OpType=REDUCE).",
         {"state": "mismatch", "ranks": "0,1", "op": "ALLREDUCE", "other_op": "REDUCE"}),
    ],
)  # fmt: skip
def test_ranks_that_disagree_are_named(line: str, fields: dict[str, object]) -> None:
    [(subject, event)] = events(read(f"{line}\n{line}"), "nccl_desync")
    assert subject == DOCUMENT
    assert {name: event.get(name) for name in fields} == fields


def test_the_store_that_could_not_be_reached() -> None:
    event = one(
        "[6]: RuntimeError: [6] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store: timeout"
    )
    assert (event.get("kind"), event.get("rank"), event.get("peer_rank")) == ("bootstrap_store", 6, 0)


def test_a_time_out_that_only_another_rank_tells_of_is_one_of_the_rank_that_it_names() -> None:
    line = (
        "[rank4]:[E1129 10:01:00.2 ProcessGroupNCCL.cpp:1685] [PG ID 2 PG GUID 5(mesh_tp) Rank 0] Received a dump signal due to a collective "
        "timeout from  rank 6 and we will try our best to dump the debug info. Last enqueued NCCL work: 1221, last completed NCCL work: 1220."
    )
    (told,) = (
        o
        for o in nccl_log.parse(lines_of(line), Context("x"))
        if o.fact == "nccl_watchdog_timeout" and o.status is Status.OK
    )
    assert isinstance(told.value, Event)
    assert (told.subject.id, told.value.get("rank"), told.value.get("seq")) == ("6", 6, None)


END = "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-29T07:01:10 DUE TO TIME LIMIT ***"
LOST = "[rank3]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 3."
RETRY = "n1:1:2 [3] net_ib.cc:9 NCCL WARN NET/IB: Got completion from peer 10.2.3.9<48112> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=1"


@each(
    ("lines", "kinds"),
    [
        ((END, LOST), ["after_end"]),
        ((LOST, END), ["aborted"]),  # what came before it is not its echo
        ((END, RETRY), ["ib_completion"]),  # a cable tells more than that the others are gone
        ((END, *["step 1"] * 500, LOST), ["aborted"]),  # another run writes into the same log
        # the first that a launcher tells of was killed: nobody's end but its own. Of one that failed first the others are killed
        ((LOST, "srun: error: n4: task 3: Killed"), ["after_end"]),
        ((LOST, "E1128 api.py:869] failed (exitcode: -11) local_rank: 3 (pid: 7) of binary: python"), ["after_end"]),
        ((LOST, "srun: error: n4: task 3: Exited with exit code 1", "srun: error: n5: tasks 0-7: Killed"), ["aborted"]),
        ((LOST, "E1128 api.py:869] failed (exitcode: -6) local_rank: 3 (pid: 7) of binary: python"), ["aborted"]),
        ((f"2026-11-29 07:01:10 {END}", f"2026-11-29 07:31:10 {LOST}"), ["aborted"]),
    ],
)
def test_what_ranks_lose_once_the_job_or_another_rank_ended_is_an_echo(
    lines: tuple[str, ...], kinds: list[str]
) -> None:
    found = nccl_log.parse(lines_of("\n".join(lines)), Context("x"))
    assert [o.value.get("kind") for o in found if o.fact == "nccl_error" and isinstance(o.value, Event)] == kinds
