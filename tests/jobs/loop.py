# mypy: ignore-errors
# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202, ANN204, ANN206, B905, RET504, SIM105, UP031
"""A loop without torch, with functions of every kind that may be an anchor. Python 3.8, standard library."""

import functools
import sys
import threading
import time

from counters import Counters, ready


def step(number):
    loss = 1.0 / number
    time.sleep(0.001)
    return loss


def traced(function):
    @functools.wraps(function)
    def wrapper(*args, **words):
        return function(*args, **words)

    return wrapper


@traced
@traced
def decorated(number, *, scale=1):
    loss = scale * float(number)
    return {"loss": loss, "name": "x"}


def closing(base):
    def inner(number):
        return base + number + sys.maxsize * 0

    return inner


closed = closing(0.5)


class Base:
    def run(self, number):
        return float(number)


class Trainer(Base):
    kept = []

    def __init__(self):
        self.bound = self.run  # as vLLM binds its step

    def run(self, number):
        loss = super().run(number) / 2
        return loss

    @classmethod
    def built(cls, number):
        return float(number)

    def __call__(self, number):
        return float(number)


def recursive(depth):
    if depth == 0:
        return 0.0
    return recursive(depth - 1) + 1.0


def batches():
    while True:
        yield [1, 2]


def failing(number):
    if number % 2:
        raise ValueError(number)
    return float(number)


trainer = Trainer()
partial = functools.partial(step, 2)
FUNCTIONS = (step, decorated.__wrapped__.__wrapped__, closed, Trainer.run, Trainer.built.__func__, Trainer.__call__, recursive,
             batches, failing)  # fmt: skip
CODES = [f.__code__ for f in FUNCTIONS]


def check():
    """What a capture may not leave behind."""
    left = [f.__name__ for f, code in zip(FUNCTIONS, CODES) if f.__code__ is not code]
    left += [t.name for t in threading.enumerate() if "gpudiag" in t.name]
    left += [m for m in (*sys.modules, *sys.path, *vars(sys), *globals()) if "gpudiag" in m]
    if hasattr(sys, "monitoring"):
        left += ["tool %d" % i for i in range(6) if sys.monitoring.get_tool(i)]
    print("left", left, flush=True)


def main():
    counters = Counters()
    supply = batches()
    number = 0
    while True:
        number += 1
        next(supply)
        step(number)
        decorated(number)
        closed(number)
        trainer.bound(number)
        Trainer.built(number)
        trainer(number)
        recursive(5)
        try:
            failing(number)
        except ValueError:
            pass
        counters.tick()
        if number == 5:
            ready()


if __name__ == "__main__":
    main()
