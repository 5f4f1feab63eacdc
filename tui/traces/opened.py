"""What is open in the trace screen, and the commands that tell about it."""

from __future__ import annotations

from typing import NamedTuple

from knowledge.language import Text

_MOST = 300  # rows of kernels and operators
_TOP = 12  # kernels of the overview
_LEAST = "0.001"  # of the whole: narrower frames of a flame graph are nowhere wider than a column


class Opened(NamedTuple):
    """Traces of one job, a profile of stacks, or a capture."""

    files: tuple[str, ...] = ()  # as they were given: files and folders
    names: tuple[str, ...] = ()  # the files of them
    kind: str = ""  # of the first: trace, nsys, folded, ... as `assistant.trace.inputs.kind_of` says
    file: str = ""  # the one of them that is shown
    rank: int | None = None  # its rank
    time: str = "gpu"  # of the flame graph
    window: str = "auto"  # which part of a trace counts: as the conversation chooses, or the whole trace
    other: tuple[str, ...] = ()  # what it is compared with, as words of `trace diff`
    capture: str = ""  # instead of files: the folder of a capture

    @property
    def views(self) -> tuple[str, ...]:
        """What can be seen of it."""
        if self.capture:
            return ("capture",)
        if self.kind in ("folded", "speedscope"):
            return ("flame",)
        if self.kind in ("ncu", "nsys-sum", "snapshot"):
            return ("page",)
        many = ("ranks",) if len(self.names) > 1 else ()
        return ("overview", "iterations", "kernels", "operators", "flame", *many, *(("compare",) if self.other else ()))

    def words(self, view: str) -> tuple[str, ...]:
        """The command for a view, without format and language."""
        where = ("--window", self.window)
        match view:
            case "overview":
                return ("trace", "summary", "--top", str(_TOP), *where, "--", *self.files)
            case "iterations":
                return ("trace", "iterations", "--", self.file)
            case "kernels":
                return ("trace", "kernels", "--top", str(_MOST), *where, "--", self.file)
            case "operators":
                return ("trace", "ops", "--top", str(_MOST), *where, "--", self.file)
            case "flame":
                return ("trace", "flame", "--min-share", _LEAST, "--time", self.time, *where, "--", self.file)
            case "ranks":
                return ("trace", "ranks", *where, "--", *self.files)
            case "compare":
                return ("trace", "diff", "--top", "40", *where, *self.other)
            case "page":
                return ("trace", "summary" if self.kind == "snapshot" else "kernels", "--", self.file)
            case _:
                return ("profile", "show", self.capture)

    def compared(self, lang: str) -> str:
        """What is compared, for people."""
        files = [named(w) for w in self.other[self.other.index("--") + 1 :]] if "--" in self.other else []
        if self.other[:1] == ("--iterations",):
            a, _, b = self.other[1].partition(":")
            return Text(f"{files[0]} · step {a} → step {b}", f"{files[0]} · 迭代 {a} → 迭代 {b}").in_(lang)
        return " → ".join(files)

    @property
    def inputs(self) -> tuple[str, ...]:
        """What the conversation is to read when something of it is asked about; nothing where it reads none of it."""
        if self.capture:
            return (f"{self.capture}/capture.json",)
        return () if self.kind in ("folded", "speedscope", "nsys-sum") else self.files


def named(file: str) -> str:
    """A file with the folder that it lies in."""
    return "/".join(file.rstrip("/").rsplit("/", 2)[-2:])


def recognised(files: tuple[str, ...]) -> Opened:
    """`files` with what they are, by the first bytes of the first. InputError where there is none."""
    from assistant.trace.inputs import head, kind_of
    from probes.trace.reading.reader import files as files_of

    names = tuple(files_of(list(files)))
    kind = kind_of(head(names[0]))
    return Opened(files, names, kind, names[0])
