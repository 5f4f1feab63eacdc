"""In a job's log the rank that failed by itself is the cause, and what the other ranks print is its echo."""

from __future__ import annotations

from itertools import product

from assistant.diagnosis import diagnose
from assistant.sources import parse_text
from rules.loader import load
from tests.cases import Faults

# What ends one rank, and the words of the first line.
CAUSES = {
    "RuntimeError: CUDA error: an illegal memory access was encountered": "Illegal memory access",
    "RuntimeError: CUDA error: device-side assert triggered": "device-side assertion",
    "RuntimeError: CUDA error: unspecified launch failure": "A CUDA kernel failed",
    "RuntimeError: CUDA error: uncorrectable ECC error encountered": "uncorrectable memory error",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB": "out of GPU memory",
    "OSError: [Errno 28] No space left on device": "No space left",
    "OSError: [Errno 5] Input/output error: '/data/shard'": "could not be read",
    "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory": "damaged or cut",
    "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.": "loader worker was killed",
    "KeyError: 'lr'": "uncaught KeyError",
}
# How the others meet it.
ECHOES = (
    "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0.",
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n[rank0]: Last error:\n"
    "[rank0]: socketProgress: Connection closed by remote peer n4.cluster<51234>",
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.3.4]:41222",
    "[E1128 02:14:31.120871 4021 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, "
    "OpType=ALLREDUCE, NumelIn=2, NumelOut=2, Timeout(ms)=600000) ran for 600042 milliseconds before timing out.",
)


def test_what_ended_one_rank_leads_whatever_the_others_say_and_in_whichever_order() -> None:
    with Faults() as faults:
        for (cause, words), echo, first in product(CAUSES.items(), ECHOES, (True, False)):
            own = f'[rank5]: Traceback (most recent call last):\n[rank5]:   File "/w/t.py", line 3, in f\n[rank5]: {cause}\n'
            lines = (own, f"[rank0]: {echo}\n") if first else (f"[rank0]: {echo}\n", own)
            said = diagnose(parse_text("log", "".join(lines)), load()).verdict.text.en
            with faults.of(f"{cause} | {echo[:60]} | {first}"):
                assert words.lower() in said.partition(" Also: ")[0].lower(), said
                assert " Also: " not in said, said
