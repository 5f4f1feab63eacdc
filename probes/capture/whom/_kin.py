"""What a Python process is to the one that started it: a worker of a data loader, a rank, or a servant of either.

Pure: words of command lines and names of threads come in. How children look was read off CPython 3.8-3.14 and torch 2.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

# python -c 'from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=6, pipe_handle=8)' --multiprocessing-fork
_SPAWNED = re.compile(r"from multiprocessing\.spawn import spawn_main\b")
# python -s -c 'from multiprocessing.forkserver import main; main(4, 5, ['__main__'], **{...})'
_SERVER = re.compile(r"from multiprocessing\.forkserver import main\b")
# python -s -c 'from multiprocessing.resource_tracker import main;main(5)'
_TRACKER = re.compile(r"from multiprocessing\.(?:resource|semaphore)_tracker import main\b")
# python /venv/lib/python3.11/site-packages/torch/_inductor/compile_worker/__main__.py --pickler=... --workers=8 --parent=4711
_COMPILER = re.compile(r"torch[/.]_inductor[/.]compile_worker\b")
LOADER_THREAD = "pt_data_worker"  # what torch (2.5 on) calls the main thread of a loader's worker
# Threads of torch that a process has which trains, and no loader's worker: the autograd engine, NCCL, gloo.
_TRAINS = ("pt_autograd", "pt_nccl", "pt_gloo")
_INTERPRETER = re.compile(r"(?:python|pypy)(?:\d+(?:\.\d+)?t?d?)?(?:-dbg)?")


class Kin(StrEnum):
    """What a child is to its parent."""

    WORKER = "worker"  # forked, or started by multiprocessing: of a data loader, or a pool
    RANK = "rank"  # started the same way, and it trains itself: torch.multiprocessing.spawn
    TRACKER = "tracker"  # multiprocessing's resource tracker
    SERVER = "server"  # multiprocessing's fork server, the parent of its workers
    COMPILER = "compiler"  # torch.compile's workers
    OTHER = "other"  # a program of its own


def is_python(path: str) -> bool:
    """Whether the file name of a program is an interpreter's: ``/usr/bin/python3.11 (deleted)``."""
    return _INTERPRETER.fullmatch(path.removesuffix(" (deleted)").rpartition("/")[2]) is not None


def trains(threads: Iterable[str]) -> bool:
    """Whether these are names of threads of a process that trains."""
    return any(name.startswith(_TRAINS) for name in threads)


def kind(
    words: Sequence[str], threads: Sequence[str], parent: Sequence[str], *, forked: bool, computes: bool = False
) -> Kin:
    """What a process is by its command line, the names of its threads (the main one first) and its parent's command line.

    `forked`: it runs its parent's program without having executed one of its own. `computes`: it has opened a GPU, and its
    parent has not.
    """
    line, above = " ".join(words), " ".join(parent)
    if _COMPILER.search(line):
        return Kin.COMPILER
    if _TRACKER.search(line):
        return Kin.TRACKER
    served = bool(_SERVER.search(line))
    if served and not _SERVER.search(above):
        return Kin.SERVER
    if threads[:1] == [LOADER_THREAD]:
        return Kin.WORKER
    if served or forked or _SPAWNED.search(line):
        return Kin.RANK if computes or trains(threads) else Kin.WORKER
    return Kin.OTHER
