# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201
"""One rank of a small data-parallel job over gloo (RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them)."""

import argparse
import datetime
import os
import queue
import threading

import torch
import torch.distributed as dist
from counters import Counters, burn, ready, rest

READY = 5  # iterations, without a fault


def augment_slowly(seconds):
    """The planted fault of --slow-rank: the others wait for this rank in all_reduce."""
    return burn(seconds)


def score_in_background():
    """The planted fault of --gil: other threads of that rank want the interpreter's lock all the time."""
    while True:
        rest()
        burn(0.05)


def stuck_in_data_loader():
    """The planted fault of --hang: this rank waits for data that never comes, and never enters all_reduce."""
    return queue.Queue().get()


def average_gradients(model, world):
    """All-reduce, one gradient after the other."""
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--slow-rank", type=int, default=-1)
    parser.add_argument("--slow", type=float, default=0.015, help="seconds an iteration")
    parser.add_argument("--hang", type=int, default=-1, metavar="RANK")
    parser.add_argument("--hang-after", type=int, default=20, metavar="ITERATIONS")
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--gil", type=int, default=-1, metavar="RANK")
    options = parser.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(hours=1))
    layers = [torch.nn.Linear(128, 128), torch.nn.ReLU()] * options.depth
    model = torch.nn.Sequential(*layers, torch.nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    counters = Counters()
    step = 0
    while True:
        if rank == options.slow_rank and step >= READY:
            augment_slowly(options.slow)
        if rank == options.hang and step == options.hang_after:
            print("hung", flush=True)
            stuck_in_data_loader()
        batch = torch.randn(32, 128)
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, world)
        optimizer.step()
        step += 1
        counters.tick()
        if step == READY:
            if rank == options.gil:  # not before: imports beside them take minutes
                for _ in range(2):
                    threading.Thread(target=score_in_background, daemon=True).start()
            ready()


if __name__ == "__main__":
    main()
