# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201
"""A training loop with more busy threads than CPUs: of its own (--threads), or of the library that multiplies (--blas)."""

import argparse
import threading
import zlib

import torch
from counters import Counters, ready, rest


def compress_in_background(data):
    """The planted fault of --threads: native code that needs a CPU, and not the interpreter's lock."""
    while True:
        rest()
        zlib.compress(data, 6)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--blas", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.blas)
    torch.manual_seed(1)
    for _ in range(options.threads):
        threading.Thread(target=compress_in_background, args=(bytes(range(256)) * 4096,), daemon=True).start()
    model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    counters, step = Counters(), 0
    while True:
        loss = model(torch.randn(256, 512)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        counters.tick()
        if step == 5:
            ready()


if __name__ == "__main__":
    main()
