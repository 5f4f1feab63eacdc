"""``gpudiag trace``: what bounds a training or serving job, from profiler traces."""

from __future__ import annotations

import argparse

from assistant.trace import options

NAME = "trace"
HELP = "tell what bounds a job from its profiler traces, and which kernel, operator, step or rank is to blame"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``trace summary | kernels | ops | iterations | diff | flame | timeline | ranks | report``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions", required=True)
    _numbers(actions)
    _comparisons(actions)
    _pictures(actions)


def _numbers(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    one = options.child(
        actions,
        "summary",
        "what bounds the job, and where the time went",
        "trace.json.gz",
        "--window iterations traces/",
        "--parameters 7e9 --tokens-per-second 12500 rank0.json",
    )
    options.window(one)
    options.one_rank(one)
    options.top(one, options.TOP)
    options.jobs(one)
    options.model(one)
    one = options.child(
        actions,
        "kernels",
        "device time of kernels: count, mean, spread, share",
        "trace.json",
        "--by module trace.json",
        "--by stream --top 5 trace.json",
    )
    options.window(one)
    options.one_rank(one)
    options.top(one, options.ROWS)
    one.add_argument("--by", choices=options.BY, default="name", help="what makes kernels one row (default: name)")
    one = options.child(actions, "ops", "host and device time of operators", "trace.json", "--by shape trace.json")
    options.window(one)
    options.one_rank(one)
    options.top(one, options.ROWS)
    one.add_argument(
        "--by",
        choices=("name", "shape"),
        default="name",
        help="operators by name, or by name and shapes (default: name)",
    )
    one = options.child(
        actions,
        "iterations",
        "how long each step took and what it was made of; outliers are named",
        "trace.json",
        "--marker 'train_step.*' trace.json",
    )
    options.marker(one)
    options.one_rank(one)
    options.top(one, 40)
    options.jobs(one)


def _comparisons(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    one = options.child(
        actions,
        "diff",
        "what explains the difference between two traces, two iterations or two ranks",
        "before.json after.json",
        "--iterations 3:7 trace.json",
        "--ranks 0:5 traces/",
    )
    options.window(one)
    options.top(one, 8)
    how = one.add_mutually_exclusive_group()
    how.add_argument("--iterations", type=options.pair, metavar="A:B", help="two iterations of one trace")
    how.add_argument("--ranks", type=options.pair, metavar="A:B", help="two ranks among the traces")
    one = options.child(
        actions,
        "ranks",
        "many ranks of a job: who is slow, who waits for whom, which link is slow",
        "traces/",
        "--dask tcp://scheduler:8786 --deadline 60 /shared/traces/",
    )
    options.window(one)
    options.top(one, options.ROWS)
    options.jobs(one)
    one.add_argument(
        "--dask",
        default="",
        metavar="WHERE",
        help="read where the traces lie, with Dask: local:N, tcp://HOST:PORT, ssh:HOST,HOST, slurm:N or kubernetes:N (package gpudiag[fleet])",
    )
    one.add_argument(
        "--deadline",
        type=options.seconds,
        metavar="SECONDS",
        help="what has not answered by then is told as missing (with --dask; default: 300)",
    )


def _pictures(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    one = options.child(
        actions,
        "flame",
        "call stacks from Python down to the kernel, by device or host time",
        "trace.json",
        "--time cpu trace.json",
        "--export svg -o flame.svg trace.json",
        "--export speedscope -o stacks.json trace.json",
    )
    options.window(one)
    options.one_rank(one)
    one.add_argument("--time", choices=("gpu", "cpu"), default="gpu", help="what a frame's width is (default: gpu)")
    one.add_argument(
        "--export",
        choices=("text", "svg", "folded", "speedscope"),
        default="text",
        help="shape of the graph (default: text)",
    )
    one.add_argument("--thread", default="", metavar="NAME", help="only this host thread")
    one.add_argument(
        "--min-share",
        type=options.fraction,
        default=0.01,
        metavar="SHARE",
        help="leave out what is less (default: 0.01)",
    )
    options.target(one, "write the graph there instead of to stdout")
    one = options.child(
        actions,
        "timeline",
        "what streams and host threads did over time, and where nothing ran",
        "trace.json",
        "--from 120ms --to 180ms trace.json",
        "--iteration 5 trace.json",
    )
    options.window(one)
    options.one_rank(one)
    one.add_argument(
        "--from", dest="from_", type=options.moment, metavar="TIME", help="begin so long after the window's start"
    )
    one.add_argument("--to", type=options.moment, metavar="TIME", help="end so long after the window's start")
    one.add_argument("--iteration", type=options.rank, metavar="N", help="only this iteration")
    one.add_argument("--width", type=options.count, metavar="COLUMNS", help="how wide to draw (default: the terminal)")
    one = options.child(
        actions,
        "report",
        "everything on one page: an HTML file that needs no network",
        "-o report.html traces/",
        "--format markdown trace.json",
    )
    options.window(one)
    options.jobs(one)
    options.top(one, None)
    options.model(one)
    options.target(one, "write the report there instead of to stdout")


def run(args: argparse.Namespace) -> int:
    """The module of the subcommand does it."""
    import importlib

    from assistant.trace.reading import standard_input

    with standard_input(args):
        code: int = importlib.import_module(f"assistant.trace.{args.action}").run(args)
    return code
