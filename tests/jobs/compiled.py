# mypy: ignore-errors
# ruff: noqa: ANN201, ANN202
"""A training loop whose optimizer's step is compiled (`step`), or its model alone (`model`); it says when torch compiles."""

import sys

import torch
from counters import Counters, ready
from torch._dynamo.utils import counters as compiles


def main():
    torch.set_num_threads(1)
    model = torch.nn.Linear(64, 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    forward, step = model, optimizer.step
    if sys.argv[1] == "step":

        @torch.compile(backend="eager")
        def step():
            optimizer.step()

    else:
        forward = torch.compile(model, backend="eager")
    counters, number, last = Counters(), 0, 0
    while True:
        loss = forward(torch.randn(32, 64)).sum()
        optimizer.zero_grad()
        loss.backward()
        step()
        counters.tick()
        number += 1
        if number == 30:
            last = compiles["frames"]["total"]
            ready()
        if number > 30 and compiles["frames"]["total"] != last:
            last = compiles["frames"]["total"]
            print("compiled again", flush=True)


if __name__ == "__main__":
    main()
