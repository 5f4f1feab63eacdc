# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201, ANN204, B905, PTH118, UP031
"""A small training loop on the CPU with planted faults, or none: iterations of about 5 to 20 ms until it is killed."""

import argparse
import collections
import json
import logging
import os
import tempfile
import threading

import torch
from counters import Counters, burn, ready, rest
from torch.utils.data import DataLoader, Dataset

FAULTS = ("none", "data", "data-workers", "python", "gil", "sync", "checkpoint", "logging", "accumulate", "tiny-batch")


def decode_slowly(index, seconds):
    """The planted fault of `data` and `data-workers`."""
    burn(seconds)
    return torch.full((64,), float(index % 7))


class Pictures(Dataset):
    def __init__(self, seconds):
        self.seconds = seconds
        self.table = torch.randn(512, 64)

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        if self.seconds:
            return decode_slowly(index, self.seconds)
        return self.table[index % 512]


def tokenize_slowly(seconds):
    """The planted fault of `python`: pure Python between two steps."""
    words = collections.Counter()
    burn(seconds)
    words.update(["the", "loss", "is", "the", "loss"])
    return words


def score_in_background(stop):
    """The planted fault of `gil`: other Python threads that want the interpreter's lock all the time."""
    while not stop.is_set():
        rest()
        burn(0.05)


def read_every_value(tensors, reads):
    """The planted fault of `sync`: one value after the other is fetched to the host."""
    total = 0.0
    for tensor in tensors:
        value = tensor.flatten()[0]
        for _ in range(reads):
            total += value.item()
    return total


def save_checkpoint(model, ballast, path):
    """The planted fault of `checkpoint`."""
    torch.save({"model": model.state_dict(), "ballast": ballast}, path)


def log_metrics(log, step, loss):
    """The planted fault of `logging`."""
    for i in range(1500):
        log.info(json.dumps({"step": step, "metric": i, "loss": loss, "name": "value of number %d" % i}))


class Model(torch.nn.Module):
    def __init__(self, depth, width):
        super().__init__()
        self.first = torch.nn.Linear(64, width)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(depth))
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(depth))
        self.last = torch.nn.Linear(width, 10)

    def forward(self, x):
        x = self.first(x)
        for layer, norm in zip(self.layers, self.norms):
            x = x + torch.nn.functional.gelu(layer(norm(x)))
        return self.last(x)


def train_step(model, batch, micro):
    """One micro-batch: the loss, after backward."""
    out = model(batch)
    loss = (out * out).mean() / micro
    loss.backward()
    return loss


def fetch(loader):
    """The next batches, for ever."""
    while True:
        yield from loader


def train(options, counters):
    """The loop: `loss` is its local."""
    faults = options.fault
    workers = options.workers if "data-workers" in faults else 0
    slow = "data" in faults or "data-workers" in faults
    batch_size = 1 if "tiny-batch" in faults else options.batch
    per_sample = options.slow / batch_size if slow else 0.0
    loader = DataLoader(Pictures(per_sample), batch_size=batch_size, num_workers=workers)
    model = Model(options.depth, options.width)
    parameters = list(model.parameters())
    half = len(parameters) // options.optimizers + 1
    groups = [parameters[i : i + half] for i in range(0, len(parameters), half)]
    optimizers = [torch.optim.AdamW(group, lr=1e-4, foreach=options.foreach) for group in groups]
    micro = 4 if "accumulate" in faults else 1
    folder = tempfile.mkdtemp(prefix="job-")
    log = logging.getLogger("train")
    log.setLevel(logging.INFO)
    log.propagate = False
    if "logging" in faults:
        log.addHandler(logging.FileHandler(os.path.join(folder, "train.log")))
    ballast = torch.zeros(4 << 20) if "checkpoint" in faults else None
    step = 0
    loss = torch.zeros(())
    batches = fetch(loader)
    while True:
        if "python" in faults:
            tokenize_slowly(options.slow)
        for _ in range(micro):
            batch = next(batches)
            loss = train_step(model, batch, micro)
        if "sync" in faults:
            read_every_value([p.grad for p in parameters if p.dim() == 2], options.reads)
        for optimizer in optimizers:
            optimizer.step()
        for optimizer in optimizers:
            optimizer.zero_grad()
        if "checkpoint" in faults:
            save_checkpoint(model, ballast, os.path.join(folder, "last.pt"))
        if "logging" in faults:
            log_metrics(log, step, float(loss.detach()))
        step += 1
        counters.tick()
        if step == 5:
            if "gil" in faults:  # not before: imports beside them take minutes
                for i in range(2):
                    work = threading.Thread(target=score_in_background, args=(threading.Event(),), daemon=True)
                    work.name = "scorer-%d" % i
                    work.start()
            ready()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="none", help="of %s; several with a comma" % ", ".join(FAULTS))
    parser.add_argument("--slow", type=float, default=0.012, help="seconds an iteration that the fault takes")
    parser.add_argument("--reads", type=int, default=400, help="of each tensor, with sync")
    parser.add_argument("--workers", type=int, default=2, help="of the loader, with data-workers")
    parser.add_argument("--depth", type=int, default=16)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--optimizers", type=int, default=1)
    parser.add_argument("--foreach", action="store_true", help="fewer, larger operators in the optimizer")
    options = parser.parse_args()
    options.fault = options.fault.split(",")
    if set(options.fault) - set(FAULTS):
        parser.error("--fault %s" % options.fault)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    train(options, Counters())


if __name__ == "__main__":
    main()
