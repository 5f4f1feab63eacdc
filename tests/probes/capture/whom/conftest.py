"""Jobs that several of these tests look at, and leave as they are."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.live_jobs import Job, torch_python

SPAWNED = """
import socket, time
import torch, torch.distributed as dist, torch.multiprocessing as mp
def rank(i, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=i, world_size=2)
    x = torch.ones(1, requires_grad=True); (x * 2).backward(); dist.all_reduce(x.grad)
    dist.barrier()
    if i == 0: print("ready", flush=True)
    while True: time.sleep(1)
if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0)); port = s.getsockname()[1]
    ranks = mp.spawn(rank, args=(port,), nprocs=2, join=False)
    print("ranks", *ranks.pids(), flush=True)
    ranks.join()
"""


@pytest.fixture(scope="session")
def spawned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """A script, called as no other here, that torch.multiprocessing starts two ranks for."""
    script = tmp_path_factory.mktemp("spawned") / f"spawns_{os.getpid()}.py"
    script.write_text(SPAWNED)
    with Job(str(script), interpreter=torch_python()) as job:
        yield job
