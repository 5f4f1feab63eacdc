# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201
"""One rank of a job in DistributedDataParallel over gloo: gradients are reduced by hooks within backward, in no Python frame of it."""

import argparse
import datetime
import os
import queue

import torch
import torch.distributed as dist
from counters import Counters, burn, ready
from torch.nn.parallel import DistributedDataParallel


def tokenize_slowly(seconds):
    """The planted fault of --slow-rank: the others wait for this rank in backward."""
    return burn(seconds)


def stuck_in_tokenizer():
    """The planted fault of --hang."""
    return queue.Queue().get()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--slow-rank", type=int, default=-1)
    parser.add_argument("--slow", type=float, default=0.03, help="seconds an iteration")
    parser.add_argument("--hang", type=int, default=-1, metavar="RANK")
    options = parser.parse_args()
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(hours=1))
    model = DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)]))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    counters, step = Counters(), 0
    while True:
        if rank == options.slow_rank:
            tokenize_slowly(options.slow)
        if rank == options.hang and step == 10:
            print("hung", flush=True)
            stuck_in_tokenizer()
        loss = model(torch.randn(16, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        counters.tick()
        if step == 5:
            ready()


if __name__ == "__main__":
    main()
