"""The options of ``gpudiag profile``, and what they wish for."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from assistant.arguments import within
from knowledge.errors import UsageError, nearest_hint

if TYPE_CHECKING:
    from probes.capture.plan import Wish

ACTIONS = ("list", "show", "delete")
# As `probes.capture.model.Item`, whose import the parser can spare.
ITEMS = ("stacks", "cpu", "offcpu", "torch", "kernels", "memory", "flops", "shapes", "loss", "gradnorm")
OUTSIDE = ITEMS[:3]  # as `probes.capture.model.GENTLE`
_TIME = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*(ms|s|)", re.ASCII)
_ANCHOR = re.compile(r"[A-Za-z_][\w.]{0,200}:[A-Za-z_][\w.]{0,200}")
_LOCAL = re.compile(r"[A-Za-z_]\w{0,100}")


def add(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.add_argument(
        "action",
        nargs="?",
        metavar="ACTION",
        type=action,
        choices=ACTIONS,
        help="list, show or delete captures that were made",
    )
    parser.add_argument("files", nargs="*", metavar="ID", help="of a capture, or its folder (with show and delete)")
    _targets(parser)
    _window(parser)
    _how(parser)


def _targets(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("from whom; several at once are captured in the same window")
    one = group.add_argument
    one("--pid", action="append", default=[], metavar="PID,...", help="processes by their number")
    one("--name", action="append", default=[], metavar="NAME", help="processes by name, script, module or command line")
    one(
        "--job", action="append", default=[], metavar="ID", help="all ranks of a job on this node: torchrun, Slurm, MPI"
    )
    one("--container", action="append", default=[], metavar="ID", help="the Python processes of a container")
    one("--gpu-users", action="store_true", help="all processes that use a GPU")
    one("--all-ranks", action="store_true", help="also the other ranks of the jobs of those that are named")
    one("--rank", action="append", default=[], type=_rank, metavar="N", help="of these only the given ranks")


def _window(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how long")
    one = group.add_argument
    one("--duration", type=duration, metavar="TIME", help="100ms to 10s (default: 2000ms)")
    one(
        "--iterations", type=count, metavar="N", help="so many iterations instead; counted inside the job, with consent"
    )
    one("--skip", type=skip, default=0, metavar="N", help="iterations to let pass first (default: 0)")
    one(
        "--anchor", default="", metavar="MODULE:FUNCTION",
        help="what one iteration is a call of (default: Optimizer.step, or the engine's step of vLLM and SGLang)",
    )  # fmt: skip


def _how(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what, and what may be done for it")
    one = group.add_argument
    one(
        "--with", dest="with_", action="append", default=[], metavar="WHAT,...",
        help=f"{', '.join(ITEMS)}; loss=NAME reads another variable (default: stacks,cpu, and with consent torch,kernels)",
    )  # fmt: skip
    one("--yes", action="store_true", help="agree to what runs inside the job, at the stated cost")
    one("--force", action="store_true", help="also what is refused as risky")
    one("--hang", action="store_true", help="only what is safe on a job that hangs: two looks at all stacks")
    one(
        "--outside",
        action="store_true",
        help="only what can be read from outside: nothing runs in the job, nobody is asked",
    )
    one(
        "--document",
        action="store_true",
        help="with --outside: print the capture itself as JSON (gpudiag/capture/1), keep nothing",
    )
    one("--dry-run", action="store_true", help="say what would be captured, refused and paid; touch nothing")
    one("-o", "--output", default="", metavar="DIR", help="keep the capture there (default: in the user's data folder)")
    one("--verbose", action="store_true", help="everything: all findings with their evidence, all parts")


def action(word: str) -> str:
    """What stands alone is an action; a process is named by an option."""
    if word not in ACTIONS:
        option = "--pid" if word.isdigit() else "--name"
        raise argparse.ArgumentTypeError(f"{word} is none of {', '.join(ACTIONS)}; to capture from it: {option} {word}")
    return word


# --- values --------------------------------------------------------------------------------


def duration(text: str) -> int:
    """``2000ms``, ``2s``, ``500`` (ms): ns."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    ns = round(float(found[1]) * (10**9 if found[2] == "s" else 10**6))
    if not 10**8 <= ns <= 10**10:
        raise ValueError(text)
    return ns


duration.__name__ = "window (100ms to 10s)"  # argparse names the type in its complaint


count = within(1, 1000, "number (1 to 1000)", int)
skip = within(0, 100_000, "number of iterations", int)
_rank = within(0, (1 << 31) - 1, "rank", int)


def pids(args: argparse.Namespace) -> tuple[int, ...]:
    """The pids of ``--pid 1,2 --pid 3``. UsageError for what is none."""
    out = []
    for word in (w for given in args.pid for w in re.split(r"[,\s]+", given.strip()) if w):
        if not word.isascii() or not word.isdigit() or not 0 < len(word) < 11 or int(word) == 0:
            raise UsageError(f"--pid {word}: no process has that number", hint="--name finds processes by their name")
        out.append(int(word))
    return tuple(dict.fromkeys(out))


def names(given: list[str]) -> tuple[str, ...]:
    """Values of an option that may be given several times; each as it stands."""
    return tuple(dict.fromkeys(word.strip() for word in given if word.strip()))


def wish(args: argparse.Namespace, line: str) -> Wish:
    """What the options ask for. UsageError for what cannot be."""
    from probes.capture.model import Item, Window
    from probes.capture.plan import Wish

    items, loss = _items(args.with_)
    if args.with_ and not items:
        raise UsageError("--with names no part", hint=f"one or more of {', '.join(ITEMS)}")
    if args.anchor and not _ANCHOR.fullmatch(args.anchor):
        raise UsageError(f"--anchor {args.anchor} names no function", hint="module:function, as in train:train_step")
    if args.iterations and args.duration:
        raise UsageError("--duration and --iterations are two windows", hint="leave one of them out")
    if args.skip and not args.iterations:
        raise UsageError("--skip counts iterations, and none are asked for", hint="--iterations 10 --skip 2")
    if args.hang and (args.iterations or set(items) - {"stacks", "cpu", "offcpu"}):
        raise UsageError("--hang injects nothing: iterations and what runs inside the job go without it")
    if args.outside:
        items = _outside(args, items)
    window = Window(args.duration or Window().duration_ns, args.iterations or 0, args.skip, args.anchor)
    common = {
        "window": window,
        "force": args.force,
        "hang": args.hang,
        "agreed": args.yes,
        "loss": loss or "loss",
        "line": line,
    }
    return Wish(tuple(Item(i) for i in items), explicit=bool(args.with_), **common) if items else Wish(**common)


def _outside(args: argparse.Namespace, items: list[str]) -> list[str]:
    """What is captured with ``--outside``. UsageError for what needs a call in the job."""
    inside = [item for item in items if item not in OUTSIDE]
    if inside or args.iterations or args.anchor:
        what = f"--with {','.join(inside)}" if inside else "--iterations" if args.iterations else "--anchor"
        raise UsageError(f"{what} runs inside the job, and --outside lets nothing run there",
                         hint=f"--with {','.join(OUTSIDE)}; or leave --outside out")  # fmt: skip
    return items or list(OUTSIDE[:2])


def _items(given: list[str]) -> tuple[list[str], str]:
    """The words of ``--with``, and the variable of ``loss=NAME``."""
    out, loss = [], ""
    for word in (w.strip().lower() if "=" not in w else w.strip() for part in given for w in part.split(",")):
        name, mark, value = word.partition("=")
        if not name:
            continue
        if name.lower() not in ITEMS:
            raise UsageError(
                f"--with {name}: there is no such part", hint=nearest_hint(name, ITEMS) or ", ".join(ITEMS)
            )
        if mark and (name != "loss" or not _LOCAL.fullmatch(value)):
            raise UsageError(
                f"--with {word}: only loss takes a name, that of a local variable", hint="--with loss=loss_value"
            )
        loss = value or loss
        out.append(name.lower())
    return list(dict.fromkeys(out)), loss
