"""Records the traces of tests/traces with torch's own profiler on a CPU: ``python bench/record_traces.py FOLDER`` (torch 2.13).

Absolute paths of the machine that recorded were shortened afterwards; nothing else was touched.
"""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    """Ten thousand numbers a sample, made in Python: the loader is what the step waits for."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.tensor([float((index * k) % 7) for k in range(64)]), torch.tensor(index % 3)


def train(steps: int, path: Path, ddp: bool = False, stack: bool = True) -> None:
    """A small model for a few steps under the profiler."""
    torch.manual_seed(0)
    model: nn.Module = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 3))
    if ddp:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = iter(DataLoader(Slow(), batch_size=8))

    def write(p: profile) -> None:
        p.export_chrome_trace(str(path))
        path.with_suffix(".json.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()

    with profile(
        activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=steps), on_trace_ready=write,
        record_shapes=True, profile_memory=True, with_stack=stack, with_modules=stack,
    ) as p:  # fmt: skip
        for _ in range(steps + 1):
            x, y = next(loader)
            with record_function("forward"):
                loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
            p.step()


def rank(number: int, folder: str) -> None:
    """One of two ranks over gloo."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
    dist.init_process_group("gloo", rank=number, world_size=2)
    train(2, Path(folder, f"gloo_rank{number}.json"), ddp=True, stack=False)
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    train(3, Path(sys.argv[1], "cpu_train.json"))
    mp.spawn(rank, (sys.argv[1],), nprocs=2)
