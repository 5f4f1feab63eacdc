"""What a dead model costs a command: wall time of `check` and `ask` with ``--narrate`` next to the same commands without, in one run.

    python bench/narration.py [--rounds 9]

The model is down (nobody listens), not installed (no such interpreter; an interpreter without litellm), or its host is not
allowed. Runs alternate, and the median of the differences within a round counts: what else the machine does hits all alike.
Wanted: no more than 100 ms beyond the command without a model.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
WANTED = 0.1  # s
BUS = ("--bundle", str(ROOT / "assistant/demos/off-the-bus/bundle"))
COMMANDS = {
    "check --bundle": ("check", *BUS),
    "ask, a bundle": ("ask", "--new", *BUS, "is this node healthy?"),
    "ask, knowledge": ("ask", "--new", "what is xid 79?"),
}


@contextmanager
def listener() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        yield int(server.getsockname()[1])


def dead(port: int) -> dict[str, dict[str, str]]:
    """Ways for a model not to be there, as settings."""
    here = f"http://127.0.0.1:{port}/v1"
    return {
        "down": {"BASE": "http://127.0.0.1:9/v1", "PYTHON": "/none/python"},
        "no interpreter": {"BASE": here, "PYTHON": "/none/python"},
        "no litellm": {"BASE": here, "PYTHON": sys.executable},
        "not allowed": {"BASE": "https://192.0.2.1/v1"},
    }


def seconds(words: tuple[str, ...], env: dict[str, str]) -> float:
    """Wall time of one command."""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "assistant", *words], env=env, capture_output=True, check=False)
    took = time.monotonic() - began
    if "--narrate" in words and b"withheld" not in done.stderr:
        raise SystemExit(f"the model was there: {done.stderr.decode()}")
    return took


def measure(folder: Path, rounds: int) -> dict[tuple[str, str], tuple[float, float]]:
    """For each command and each way: median seconds without a model, and median of what it took longer with one."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GPUDIAG_")}
    base = kept | {"PYTHONPATH": str(ROOT), "GPUDIAG_STATE_DIR": str(folder / "state"), "GPUDIAG_CACHE_DIR": str(folder / "cache"),
                   "GPUDIAG_HISTORY_URL": "off", "GPUDIAG_LLM_MODEL": "openai/m"}  # fmt: skip
    out: dict[tuple[str, str], tuple[float, float]] = {}
    with listener() as port:
        ways = {name: base | {f"GPUDIAG_LLM_{k}": v for k, v in more.items()} for name, more in dead(port).items()}
        for command, words in COMMANDS.items():
            seconds(words, base)  # the first run compiles modules and data
            off: list[float] = []
            longer: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(rounds):
                off.append(seconds(words, base))
                for name, env in ways.items():
                    longer[name].append(seconds((*words, "--narrate"), env) - off[-1])
            out |= {(command, n): (statistics.median(off), statistics.median(d)) for n, d in longer.items()}
    return out


def main() -> int:
    """Print the table; 1 when one costs more than it may."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), args.rounds)
    print(f"{'command':16} {'model':16} {'without ms':>10} {'longer ms':>10} {'ratio':>6}")
    bad = 0
    for (command, way), (off, longer) in found.items():
        over = longer > WANTED
        bad += over
        print(
            f"{command:16} {way:16} {off * 1e3:10.0f} {longer * 1e3:10.1f} {1 + longer / off:6.2f}{'  OVER' if over else ''}"
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
