# mypy: ignore-errors
# ruff: noqa: ANN201, PTH108, PTH110, PTH118, PTH123, UP031
"""A small training loop that forks a process when its file `fork` appears: that one makes `OPERATORS` operators, says by how many KiB
it grew, and ends as a program does."""

import os
import sys
import threading
import time

import torch
from counters import Counters, ready

OPERATORS = 40000


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def forked():
    x = torch.ones(8)
    for _ in range(2000):
        x = torch.add(x, 1)
    before = resident()
    for _ in range(OPERATORS):
        x = torch.add(x, 1)
    hooks = sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
    left = [k for k in (*vars(sys), *map(str, threading.enumerate())) if "gpudiag" in k] + list(hooks)
    if torch.autograd.profiler._prepare_profiler is not torch.autograd._prepare_profiler:
        left.append("_prepare_profiler")
    print("grew %d left %s" % (resident() - before, left), flush=True)
    os._exit(0)  # kineto hangs in a fork that ends by exit(), as after any profile of torch (docs/profile.md)


def main():
    folder = os.environ["TMPDIR"]
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    counters, step, child, began = Counters(), 0, 0, 0.0
    torch.set_num_threads(1)
    while True:
        loss = model(torch.randn(32, 64)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.002)
        counters.tick()
        step += 1
        if step == 5:
            ready()
        if not child and os.path.exists(os.path.join(folder, "fork")):
            child, began = os.fork(), time.monotonic()
            if child == 0:
                forked()
        if child and os.waitpid(child, os.WNOHANG)[0]:
            print("ended after %d ms" % ((time.monotonic() - began) * 1000), flush=True)
            child = 0
            os.unlink(os.path.join(folder, "fork"))


if __name__ == "__main__":
    main()
