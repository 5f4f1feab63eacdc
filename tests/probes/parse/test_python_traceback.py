"""Stories of Python programs that died, and of jobs that were ended."""

from __future__ import annotations

from pathlib import Path

from knowledge.observation import Event, Observation
from probes.base import Context, lines_of
from probes.parse import python_traceback
from tests.cases import each

CAPTURES = Path(__file__).parents[2] / "captures" / "app"


def read(text: str) -> list[Observation]:
    return python_traceback.parse(lines_of(text), Context("job.log"))


def events(text: str, name: str) -> list[Event]:
    return [o.value for o in read(text) if o.fact == name and isinstance(o.value, Event)]


def test_the_story_of_a_job() -> None:
    text = (CAPTURES / "python.job-died.log").read_text()
    kinds = [event.get("kind") for event in events(text, "python_error")]
    assert kinds == ["dataloader_shm", "nan_loss", "missing_library", "store_timeout", "exception"]
    failed = events(text, "rank_failed")
    assert [(e.get("rank"), e.get("signal"), e.get("root"), e.get("launcher")) for e in failed] == [
        (9, 11, False, "torchrun"),
        (8, 9, True, "torchrun"),
        (None, 9, None, "srun"),
        (None, None, None, "srun"),
    ]
    assert [(e.get("reason"), e.get("job")) for e in events(text, "job_terminated")] == [
        ("oom_killed", "771"),
        ("time_limit", "772"),
        ("preempted", "773"),
    ]


def test_a_task_number_is_a_label_and_no_rank() -> None:
    event = events((CAPTURES / "python.job-died.log").read_text(), "python_error")[0]
    assert (event.get("label"), event.get("rank"), event.get("signal")) == ("3", None, 7)
    assert (event.get("file"), event.get("line_in_source")) == ("/proj/orchid/train.py", 12)


@each(
    ("line", "fields"),
    [
        ("RuntimeError: DataLoader worker (pid(s) 12) exited unexpectedly", {"kind": "dataloader_worker_killed", "pid": 12}),
        ("RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.", {"kind": "dataloader_worker_killed", "signal": 9}),
        ("ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).", {"kind": "dataloader_shm"}),
        ("RuntimeError: [enforce fail at inline_container.cc:626] . unexpected pos 20864 vs 20758", {"kind": "checkpoint_not_written"}),
        ("RuntimeError: PytorchStreamReader failed reading zip archive: invalid header or archive is corrupted", {"kind": "checkpoint_damaged"}),
        ("OSError: [Errno 5] Input/output error: '/ckpt/a.distcp'", {"kind": "storage_error", "place": "/ckpt/a.distcp"}),
        ("/job:jax_worker/replica:0/task:5", {"kind": "jax_task_lost", "place": "task 5"}),
        ("F rendezvous.cc:101] Termination timeout for `x` of 40 seconds exceeded. Expected 8 threads to join the rendezvous, but only 7 of them", {"kind": "xla_rendezvous", "place": "7/8"}),
        ("OSError: [Errno 24] Too many open files: 'x'", {"kind": "too_many_open_files", "errno": 24}),
        ("RuntimeError: unable to open shared memory object </torch_9_1> in read-write mode", {"kind": "shared_memory"}),
        ("ImportError: /x/libtorch_cuda.so: undefined symbol: ncclCommRegister", {"kind": "missing_library", "symbol": "ncclCommRegister"}),
        ("OSError: libnvidia-ml.so.1: cannot open shared object file: No such file", {"kind": "missing_library", "library": "libnvidia-ml.so.1"}),
        ("RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing", {"kind": "fork_cuda"}),
        ("Loss is nan, stopping training", {"kind": "nan_loss"}),
        ("RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.", {"kind": "nan_loss"}),
        ("[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 1, reducing to 1", {"kind": "grad_overflow"}),
        ("[c10d] The client socket has timed out after 600s while trying to connect to (10.0.0.1, 29500).",
         {"kind": "store_timeout", "address": "10.0.0.1", "port": 29500, "timeout_s": 600.0}),
        ("RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: k (world_size=8, worker_count=7, timeout=0:30:00)",
         {"kind": "store_timeout", "expected": 8, "joined": 7}),
        ("The server socket has failed to listen. port: 29500, useIpv6: 0, code: -98, name: EADDRINUSE", {"kind": "address_in_use", "port": 29500}),
        ("[TRT] [E] Error Code 1: Serialization (stdVersionRead == kSERIALIZATION_VERSION failed.Version tag does not match. Note: Current Version: 239, Serialized Engine Version: 226)",
         {"kind": "engine_mismatch"}),
        ("RuntimeError: [gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.1]:12345", {"kind": "gloo", "address": "10.0.0.1", "port": 12345}),
    ],
)  # fmt: skip
def test_a_line_tells_its_kind(line: str, fields: dict[str, object]) -> None:
    [event] = events(line, "python_error")
    assert {name: event.get(name) for name in fields} == fields


def traceback(exception: str) -> str:
    return f'Traceback (most recent call last):\n  File "/proj/a.py", line 3, in f\n    x()\n{exception}\n'


@each(
    "exception",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "torch.distributed.DistBackendError: NCCL error in: /b/P.cpp:1, unhandled system error",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "KeyboardInterrupt",
        "subprocess.CalledProcessError: Command 'x' returned non-zero exit status 1.",
    ],
)
def test_what_other_formats_tell_is_not_told_here(exception: str) -> None:
    assert events(traceback(exception), "python_error") == []


def test_any_other_exception_that_was_not_handled() -> None:
    [event] = events(traceback("pkg.errors.ConfigError: no such key"), "python_error")
    assert (event.get("kind"), event.get("exception"), event.get("file")) == (
        "exception",
        "pkg.errors.ConfigError",
        "/proj/a.py",
    )
    handled = (
        traceback("KeyError: 1")
        + "\nDuring handling of the above exception, another exception occurred:\n\n"
        + traceback("ValueError: 2")
    )
    assert [e.get("exception") for e in events(handled, "python_error")] == ["ValueError"]


@each(
    "line",
    [
        "WARNING [utils.py:2168] Found ulimit of 51200. This can cause fd limit errors like `OSError: [Errno 24] Too many open files`.",
        "hint: raise ulimit -n to avoid Too many open files",
        "UserWarning: a small /dev/shm may result in a DataLoader worker (pid 12) being killed by signal: Bus error",
    ],
)
def test_what_a_program_warns_of_has_not_happened(line: str) -> None:
    assert events(line, "python_error") == []


def test_a_loss_that_is_a_number_is_well() -> None:
    assert events("{'loss': 2.31}\nloss: 0.5 nano\nnan_to_num(loss)\nloss=inference", "python_error") == []
    search = "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768"
    assert (
        events(
            f"{search}\nGradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 16384.0", "python_error"
        )
        == []
    )


@each(
    ("line", "fields"),
    [
        ("E1115 api.py:833] failed (exitcode: -9) local_rank: 2 (pid: 1234) of binary: /usr/bin/python3", {"local_rank": 2, "signal": 9, "signal_name": "SIGKILL"}),
        ("mpirun noticed that process rank 3 with PID 1234 on node gpu-7 exited on signal 9 (Killed).", {"rank": 3, "signal": 9, "host": "gpu-7"}),
        ("  Process name: [[63697,1],0]\n  Exit code:    1", {"rank": 0, "exitcode": 1}),
        ("srun: error: node5: task 3: Segmentation fault (core dumped)", {"task": "3", "signal": 11, "host": "node5"}),
        ("srun: error: node5: tasks 0-7: Out Of Memory", {"task": "0-7", "reason": "oom_killed"}),
        ("[2025-11-15] [launch.py:321] ['python'] exits with return code = -9", {"exitcode": -9, "signal": 9}),
        ("srun: error: n1: task 0: Exited with exit code 139", {"exitcode": 139, "signal": 11}),
    ],
)  # fmt: skip
def test_launchers_report_failures_in_their_own_words(line: str, fields: dict[str, object]) -> None:
    [event] = events(line, "rank_failed")
    assert {name: event.get(name) for name in fields} == fields


def test_a_checkpoint_names_the_rank_whose_part_failed() -> None:
    text = """[rank0]: Traceback (most recent call last): (RANK 13)
[rank0]:   File "/proj/a.py", line 1, in all_reduce
[rank0]: OSError: [Errno 5] Input/output error: '/ckpt/__13_0.distcp'
"""
    assert [e.get("rank") for e in events(text, "python_error")] == [13]


@each(("last", "went_on"), [("Training finished\n", True), ("step 110 | loss 2.0 | 1.8 s/it\n", False), ("", False)])
def test_a_job_that_came_to_its_end_got_over_the_exception_of_a_rank(last: str, went_on: bool) -> None:
    text = f'[rank5]: Traceback (most recent call last):\n[rank5]:   File "/w/e.py", line 3, in f\n[rank5]: ValueError: bad sample\n{last}'
    assert [e.get("went_on") for e in events(text, "python_error")] == [went_on]


SRUN = "srun: error: gpu-9: task 9: {}\n"
CANCELLED = "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2025-11-15T00:00:00 ***\n"


@each(
    ("text", "echoes", "reasons"),
    [
        # the launcher ends the others, and srun the step: the first is what failed by itself
        (SRUN.format("Killed") + CANCELLED + "srun: error: n1: tasks 0-7: Terminated\n", [False, True], []),
        (SRUN.format("Exited with exit code 1") + CANCELLED, [False], []),
        # somebody cancelled it: the tasks end with it
        (CANCELLED + SRUN.format("Terminated"), [False], ["cancelled"]),
        (SRUN.format("Terminated") + CANCELLED, [False], ["cancelled"]),
        (CANCELLED + SRUN.format("Killed"), [False], ["cancelled"]),
    ],
)
def test_what_failed_by_itself_is_told_from_what_was_ended_with_it(
    text: str, echoes: list[bool], reasons: list[str]
) -> None:
    assert [e.get("echo") for e in events(text, "rank_failed")] == echoes
    assert [e.get("reason") for e in events(text, "job_terminated")] == reasons


def test_the_table_of_torchrun_tells_what_is_an_echo() -> None:
    failed = events((CAPTURES / "python.job-died.log").read_text(), "rank_failed")
    assert [(e.get("rank"), e.get("echo")) for e in failed[:2]] == [(9, True), (8, False)]


def test_the_node_that_failed_is_not_the_one_that_tells_of_it() -> None:
    text = f"srun: error: Node failure on gpu-9\n{CANCELLED.replace(' ***', ' DUE TO NODE FAILURE ***')}"
    assert {e.get("host") for e in events(text, "job_terminated")} == {"gpu-9", None}


def test_a_process_of_the_summary_is_not_told_again() -> None:
    text = (CAPTURES / "python.job-died.log").read_text()
    again = "failed (exitcode: -9) local_rank: 0 (pid: 6174) of binary: /usr/bin/python3"
    assert len(events(f"{again}\n{text}", "rank_failed")) == len(events(text, "rank_failed"))


@each(
    ("line", "reason", "signal"),
    [
        ("slurmstepd: error: Exceeded job memory limit at some point.", "oom_killed", None),
        (
            "slurmstepd: error: *** JOB 1 ON n CANCELLED AT 2025-11-15T00:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
            "node_failure",
            None,
        ),
        ("slurmstepd: error: *** STEP 1.0 ON n CANCELLED AT 2025-11-15T00:00:00 ***", "cancelled", None),
        ("    Reason:       OOMKilled", "oom_killed", None),
        ("/var/spool/job1/slurm_script: line 15: 259449 Killed                  ./a", "killed", 9),
        ("Segmentation fault (core dumped)", "segfault", 11),
        ("Fatal Python error: Bus error", "bus_error", 7),
        ("torch.distributed.elastic.multiprocessing.api.SignalException: Process 9 got signal: 15", "terminated", 15),
        ("command terminated with exit code 137", "killed", 9),
        ("subprocess.CalledProcessError: Command '['python']' died with <Signals.SIGKILL: 9>.", "killed", 9),
        ("[n1:4021 :0:4021] Caught signal 7 (Bus error: nonexistent physical address)", "bus_error", 7),
        ("WARN Spot Instance interruption notice received: instance i-0a", "preempted", None),
    ],
)
def test_jobs_end_for_a_reason(line: str, reason: str, signal: int | None) -> None:
    [event] = events(line, "job_terminated")
    assert (event.get("reason"), event.get("signal")) == (reason, signal)


@each(
    "line",
    [
        "Killed two birds",
        "the worker was Killed",
        "exit code 1",
        '"OOMKilled": false,',
        "  oomKilled: false OOMKilled=false",
        "slurmstepd: error: cannot cd to /x",
    ],
)
def test_near_misses_end_nothing(line: str) -> None:
    assert events(line, "job_terminated") == []
