"""Python tracebacks within the lines of one or many processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from knowledge.lazy import lazy
from knowledge.observation import Clock
from knowledge.record import dataclass
from probes.parse._app_lines import AppLine

MAX_FRAMES = 400
MAX_MESSAGE_LINES = 14  # torch appends up to seven lines of advice, NCCL three

_FRAME = lazy(r'\s{0,40}File "([^"]{1,1000})", line (\d{1,9})(?:, in (.{1,300}))?')
# RuntimeError: text   torch.cuda.OutOfMemoryError: text   KeyboardInterrupt   ray.exceptions.RayTaskError(ValueError): text
EXCEPTION = lazy(r"([A-Za-z_][\w.]{0,200})(?:\([\w.]{0,80}\))?(?::(?: |$)|$)")
# what can only be the next record, never the rest of a message
_RECORD = lazy(
    r"Traceback \(most recent call last\)|During handling of the above|The above exception was the direct"
    r"|Exception raised from |frame #\d|\[[EWI]\d{3,4} |\[[\w.-]{1,80}:\d{1,9}(?::\d{1,9})?\] |terminate called"
    r"|[\w.-]{1,80}:\d{1,9}:\d{1,9} \[\d|={20}|-{20}|srun: |slurmstepd: |[A-Z]{4,8}:[\w.]{3}"
)
_LIBRARY = lazy(
    r"site-packages/|dist-packages/|/lib(?:64)?/python\d|<frozen |/torch/|/jax/|/tensorflow/|site-packages\\|\\lib\\python"
)


@dataclass(frozen=True, slots=True)
class Frame:
    """One call of a traceback."""

    file: str
    line: int
    function: str
    code: str = ""

    @property
    def library(self) -> bool:
        """True for code that the user did not write."""
        return _LIBRARY.search(self.file) is not None


@dataclass(slots=True)
class Traceback:
    """One exception with its calls, outermost first."""

    head: AppLine
    frames: list[Frame] = field(default_factory=list)
    end: AppLine | None = None  # the line that names the exception
    exception: str = ""
    message: list[str] = field(default_factory=list)
    numbers: set[int] = field(default_factory=set)  # lines that belong to it
    caught: bool = False  # another exception follows that it led to: not what ended the program

    @property
    def rank(self) -> int | None:
        """The rank that its lines name."""
        return self.head.rank if self.end is None or self.end.rank is None else self.end.rank

    @property
    def text(self) -> str:
        """The exception with its whole message, lines joined by newlines."""
        first = self.message[0] if self.message else ""
        return "\n".join([f"{self.exception}: {first}" if first else self.exception, *self.message[1:]])

    @property
    def user_frame(self) -> Frame | None:
        """The innermost call in the user's own code, else the innermost call."""
        own = [frame for frame in self.frames if not frame.library]
        return own[-1] if own else (self.frames[-1] if self.frames else None)

    @property
    def at(self) -> tuple[int | None, Clock]:
        """When, as far as the lines tell."""
        line = self.end or self.head
        return (line.at, line.clock) if line.at is not None else (self.head.at, self.head.clock)


def tracebacks(lines: Sequence[AppLine]) -> list[Traceback]:
    """All tracebacks, each from the lines of one label, in the order of their first lines."""
    found: list[Traceback] = []
    open_: dict[str, Traceback] = {}
    last: dict[str, Traceback] = {}
    for line in lines:
        current = open_.get(line.label)
        if "Traceback (most recent call last)" in line.text:
            current = Traceback(line, numbers={line.number})
            open_[line.label] = current
            found.append(current)
        elif line.text.startswith(
            ("During handling of the above exception", "The above exception was the direct cause")
        ):
            open_.pop(line.label, None)
            if line.label in last:
                last[line.label].caught = True
        elif current is not None:
            last[line.label] = current
            if not _feed(current, line):
                del open_[line.label]
    return [traceback for traceback in found if traceback.end is not None or traceback.frames]


def _feed(traceback: Traceback, line: AppLine) -> bool:
    """Add `line`; False when the traceback is over."""
    text = line.text
    if traceback.end is None:
        if frame := _FRAME.match(text):
            if len(traceback.frames) < MAX_FRAMES:
                traceback.frames.append(Frame(frame[1], int(frame[2]), (frame[3] or "").strip()))
        elif text[:1] in (" ", "\t") or not text:
            _add_code(traceback, text)
        elif (named := EXCEPTION.match(text)) and traceback.frames:
            traceback.end = line
            traceback.exception = named[1]
            traceback.message.append(text[named.end() :].strip())
        else:
            return bool(not traceback.frames and line.number - traceback.head.number < 3)
        traceback.numbers.add(line.number)
        return True
    return _continue(traceback, line)


def _add_code(traceback: Traceback, text: str) -> None:
    code = text.strip()
    if not code or not traceback.frames or traceback.frames[-1].code or not set(code) - set("^~"):
        return
    frame = traceback.frames[-1]
    traceback.frames[-1] = Frame(frame.file, frame.line, frame.function, code[:300])


def _continue(traceback: Traceback, line: AppLine) -> bool:
    if len(traceback.message) >= MAX_MESSAGE_LINES or _RECORD.match(line.text):
        return False
    if not line.text.strip():
        # one blank line may stand within a message, two end it
        ended = not traceback.message[-1]
        traceback.message.append("")
        return not ended
    if traceback.end is not None and line.at is not None and traceback.end.at is None:
        return False  # the next record carries a time, the traceback does not
    traceback.message.append(line.text.strip())
    traceback.numbers.add(line.number)
    return True
