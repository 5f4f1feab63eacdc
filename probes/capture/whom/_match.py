"""Which processes a name means: by the short name, the script, the module, or a word of the command line.

Pure: command lines come in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

import probes
from knowledge.record import dataclass
from probes.capture.whom._kin import is_python

STRONG, WEAK, NO = 2, 1, 0
# A long option of CPython with a value of its own: what follows is neither script nor module.
_VALUED = frozenset({"--check-hash-based-pycs"})
_SHELLS = frozenset({
    "sh", "bash", "dash", "zsh", "fish", "ksh", "tcsh", "csh", "ash", "busybox", "sudo", "su", "env", "timeout", "nohup", "nice",
    "setsid", "stdbuf", "tmux", "screen", "ssh", "sshd", "watch", "docker", "podman", "kubectl", "time", "taskset", "numactl", "xargs",
    "unshare", "nsenter", "chroot", "setpriv", "runuser", "tini", "dumb-init", "gdb", "strace", "ltrace", "perf", "tail", "less", "vim",
    "nano", "emacs", "grep",
})  # fmt: skip
_LAUNCHERS = frozenset({
    "torchrun", "torchx", "srun", "sbatch", "salloc", "slurmstepd", "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun",
    "orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy", "horovodrun", "accelerate", "accelerate-launch", "deepspeed",
    "composer", "colossalai", "fabric", "pdsh", "ray", "nsys", "ncu", "nsys-launcher", "uv", "poetry", "pipenv", "conda",
    "lightning",
})  # fmt: skip
_LAUNCHING = re.compile(  # modules that start ranks in processes of their own, by their beginning
    r"torch\.distributed\.(?:run|launch|launcher|elastic)\b|accelerate\.commands\b|deepspeed\.launcher\b|horovod\.runner\b|"
    r"lightning\.fabric\.cli\b|composer\.cli\b|colossalai\.cli\b"
)
_OWN = str(PurePosixPath(probes.__file__).parent)  # collectors and reading helpers of this installation


@dataclass(frozen=True, slots=True)
class Line:
    """A command line, taken apart as Python takes its own."""

    program: str = ""  # base name of the first word
    script: str = ""  # path of the script, where Python runs one
    module: str = ""  # after -m
    rest: tuple[str, ...] = ()  # all words but the first

    @property
    def python(self) -> bool:
        """Whether the first word is an interpreter's name."""
        return is_python(self.program)

    @property
    def short(self) -> str:
        """What people call it: the script's base name, ``-m module``, else the program."""
        return self.script.rpartition("/")[2] or (f"-m {self.module}" if self.module else self.program)


def line_of(words: Sequence[str], *, python: bool = False) -> Line:
    """A command line in its parts. `python`: it runs Python whatever its first word says (a script with ``#!``)."""
    if not words:
        return Line()
    program, rest = words[0].rpartition("/")[2], tuple(words[1:])
    if not (python or is_python(program)):
        return Line(program, rest=rest)
    words_left = iter(rest)
    for word in words_left:
        if not word.startswith("-"):
            return Line(program, script=word, rest=rest)
        if word in ("-", "--"):
            break
        if word.startswith("--"):
            if word in _VALUED:
                next(words_left, None)
            continue
        ends, module = _options(word[1:], words_left)
        if ends:
            return Line(program, module=module, rest=rest)
    return Line(program, rest=rest)


def _options(letters: str, following: Iterator[str]) -> tuple[bool, str]:
    """Letters behind one dash, such as ``-uIm``: whether a module or a command ends the options, and which module."""
    for i, letter in enumerate(letters):
        if letter == "c":
            return True, ""
        if letter == "m":
            return True, letters[i + 1 :] or next(following, "")
        if letter in "WX":
            if not letters[i + 1 :]:
                next(following, None)
            break
    return False, ""


def strength(name: str, comm: str, line: Line) -> int:
    """How well a name means a process: STRONG by its short name, program, script or module, WEAK by a word, else NO.

    ``*`` and ``?`` stand for anything; a script's name may be given without ``.py``, a module by its last part, a script or
    a word with folders by its end. Several words mean words that follow each other.
    """
    script = PurePosixPath(line.script)
    names = {comm, line.program, line.script, script.name, line.module, line.module.rpartition(".")[2]}
    if script.suffix == ".py":
        names.add(script.stem)
    names.discard("")
    if any(fnmatchcase(known, name) for known in names) or _ends(line.script, name):
        return STRONG
    parts = name.split()
    windows = (line.rest[i : i + len(parts)] for i in range(len(line.rest) - len(parts) + 1)) if parts else ()
    return WEAK if any(all(map(_is, window, parts)) for window in windows) else NO


def _is(word: str, name: str) -> bool:
    return fnmatchcase(word, name) or fnmatchcase(word.rpartition("/")[2], name) or _ends(word, name)


def _ends(path: str, name: str) -> bool:
    return "/" in name and path.endswith("/" + name.lstrip("./"))


def ours(line: Line) -> bool:
    """Whether this is a process of gpudiag: the command, a collector, a helper, or the py-spy that it starts."""
    script = line.script
    if script.startswith(_OWN + "/") or script.rpartition("/")[2] == "gpudiag" or line.program in ("gpudiag", "py-spy"):
        return True
    return line.module in ("assistant", "gpudiag") or line.module.startswith("assistant.")


def launches(line: Line) -> bool:
    """Whether this starts other programs and does no work itself: a launcher of ranks, a shell, a tool around the job."""
    name = line.script.rpartition("/")[2]
    if line.program in _SHELLS or line.program in _LAUNCHERS or name in _LAUNCHERS:
        return True
    dotted = line.script.removesuffix(".py").replace("/", ".")
    return bool(_LAUNCHING.match(line.module) or _LAUNCHING.search(dotted))
