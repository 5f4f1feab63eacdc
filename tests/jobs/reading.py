# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201, ANN204, PTH118, PTH123
"""A training loop whose samples lie in a file that the page cache never holds: each read goes to storage."""

import argparse
import os
import tempfile

import torch
from counters import Counters, ready
from torch.utils.data import DataLoader, Dataset

SHARD = 4 << 20


def read_shard(file, index, shards):
    """The planted fault: what is read was thrown out of the page cache before."""
    at = (index * 7919 % shards) * SHARD
    os.posix_fadvise(file, at, SHARD, os.POSIX_FADV_DONTNEED)
    return os.pread(file, SHARD, at)


class Shards(Dataset):
    def __init__(self, path, size):
        self.path, self.shards, self.file = path, size // SHARD, None

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        if self.file is None:
            self.file = os.open(self.path, os.O_RDONLY)
            os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_RANDOM)
        data = read_shard(self.file, index, self.shards)
        return torch.frombuffer(bytearray(data[:256]), dtype=torch.uint8).float()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--size", type=int, default=256, help="MiB")
    options = parser.parse_args()
    torch.set_num_threads(1)
    path = os.path.join(tempfile.gettempdir(), "shards")
    with open(path, "wb") as file:
        for _ in range(options.size // 4):
            file.write(os.urandom(SHARD))
        os.fsync(file.fileno())
    loader = DataLoader(Shards(path, options.size << 20), batch_size=4, num_workers=options.workers)
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    counters = Counters()
    for step, batch in enumerate(loader):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        counters.tick()
        if step == 5:
            ready()


if __name__ == "__main__":
    main()
