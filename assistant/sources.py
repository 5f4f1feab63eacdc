"""From paths to observations: what was given is opened, recognised, read once, and accounted for.

``--log`` reads any log with all log formats in one pass; ``--input`` recognises the content
first. What cannot be opened stops the command only when nothing else was given; that, and what
is not understood, is said in a note.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from assistant import formats
from assistant.captures import latest_captures, still_told
from assistant.vendors import world_of
from knowledge.errors import InputError
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.observation import Event, Observation, Origin, Source, Status, node
from knowledge.record import dataclass
from knowledge.text import clean, excerpt
from probes import moments, prose
from probes._scan_open import STDIN, Reader, foreign, opened, unpacked
from probes.around import bare
from probes.base import Context, DocumentFormat, Format, Line, LogFormat, lines_of
from probes.labels import Part, headed
from probes.labels import apart as labelled
from probes.pieces import Named, apart, recognised, standing
from probes.scan import Note, Scanned, ScanResult, scan
from probes.whole import END_KNOWN, LAYOUT_KNOWN, OF_INPUTS, Whole, closed, says_cut, whole

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

EMPTY = Text("is empty", "为空文件")
PEEK = 8_192  # characters behind labels: a log is not looked through twice for documents
HEAD = 65_536  # bytes that a format is recognised by (probes.base.DocumentFormat.sniff)
PASTE = 1 << 20  # bytes: in a log that is longer nobody looks for outputs of tools between its lines
DOCUMENT_CAP = 256 << 20  # bytes of a document: the largest bug reports are a tenth of it
AT_ONCE = 64 << 20  # bytes: a log of so many is worth a process of its own, where there are several and a core is free
TOLD = ("node.gpu.expected",)  # facts that options of the command line give
Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the inputs gave."""

    observations: tuple[Observation, ...] = ()
    notes: tuple[Note, ...] = ()
    sources: tuple[str, ...] = ()
    kinds: tuple[tuple[str, tuple[str, ...]], ...] = ()  # input -> names of the formats that read it
    cut: tuple[str, ...] = ()  # inputs of which a part, or all, could not be read
    earlier: tuple[Observation, ...] = ()  # of two captures of one thing what the earlier one told


@dataclass(slots=True)
class _Gathering:
    host: str
    progress: Progress | None
    observations: list[Observation] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    kinds: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    cut: dict[str, None] = field(default_factory=dict)
    whole: dict[DocumentFormat, list[str]] = field(default_factory=dict)  # files that are read together, at the end
    scanned: dict[str, ScanResult] = field(default_factory=dict)  # logs that were read ahead, in processes of their own
    order: int = 0  # of the inputs which one is read, from 1

    def lost(self, name: str, why: Text) -> None:
        """Note that a part of `name` could not be read."""
        self.notes.append(Note(name, why))
        self.cut.setdefault(name)

    def context(self, name: str) -> Context:
        return Context(name, self.host)


def read(
    logs: Sequence[str],
    inputs: Sequence[str],
    host: str = "",
    progress: Progress | None = None,
    *,
    at_once: int = AT_ONCE,
) -> Reading:
    """Read all inputs; ``-`` is standard input. A file that is named twice is read once; a folder of traces is read whole.

    Several logs of `at_once` bytes and more are read side by side where cores are free. What cannot be opened is named in a note; InputError names it when nothing could be opened.
    """
    wanted, repeated = _once([*((p, False) for p in logs), *((p, True) for p in _inside(inputs))])
    g = _Gathering(host, progress)
    faults = _check(path for path, _ in wanted)
    if faults and len(faults) == len(wanted):
        raise _all_of(faults.values())
    for path, fault in faults.items():
        g.lost(path, _not_opened(path, fault))
    g.notes += [
        Note(p, Text("was named twice and is read once", "重复给出，只读取一次"), problem=False) for p in repeated
    ]
    names = [path for path, _ in wanted if path not in faults]
    g.scanned = _ahead([path for path, sniffed in wanted if not sniffed and path not in faults], g, at_once)
    late: list[InputError] = []
    for path, sniffed in wanted:
        if path in faults:
            continue
        g.order += 1
        try:
            (_read_input if sniffed else _read_log)(path, g)
        except InputError as fault:  # it went away, or only opening it told
            late.append(fault)
            names.remove(path)
            g.lost(path, _not_opened(path, fault))
    if late and not names:
        raise _all_of([*faults.values(), *late])
    _read_together(g)
    now, earlier, retaken = latest_captures(g.observations)
    g.notes += retaken
    return Reading(tuple(now), tuple(g.notes), tuple(map(_shown, names)), tuple(g.kinds), tuple(g.cut), tuple(earlier))


def told(host: str, expected_gpus: int | None, where: str = "--expect-gpus") -> list[Observation]:
    """What the user says on the command line, or in the file and line `where`."""
    if expected_gpus is None:
        return []
    source = Source("told", where)
    return [Observation("node.gpu.expected", node(host), expected_gpus, source=source, origin=Origin.TOLD)]


def provided() -> frozenset[str]:
    """Every fact that some input kind, some option or what a person states can give."""
    from knowledge.lexicon import lexicon

    stated = (t.fact for s in lexicon().statements for t in s.tells)
    return formats.provided() | frozenset((*TOLD, *OF_INPUTS, *stated))


def tells(fact: str) -> str:
    """The input kinds that tell `fact`, for people: at most three, the most telling first."""
    return ", ".join(formats.tellers(fact)[:3])


def parse_text(kind: str, text: str) -> list[Observation]:
    """Text of a rule's test through the real parsers: ``kmsg`` and ``log`` as logs, ``input`` recognised by content.

    ValueError when nothing recognises an ``input``.
    """
    if kind in ("kmsg", "log"):
        return list(scan([Named(text, kind)], formats.log_formats()).observations)
    g = _Gathering("", None)
    _read_stream(kind, Named(text, kind), g, None)
    if not g.kinds:
        raise ValueError("no format recognises the text")
    return g.observations


# --- what was named -----------------------------------------------------------------------


def _inside(inputs: Iterable[str]) -> Iterator[str]:
    """The inputs, instead of a folder the traces in it; a folder without any stands as it is, and cannot be read."""
    for path in inputs:
        if path == "-" or not Path(path).is_dir():
            yield path
            continue
        from probes.trace.reading.reader import files

        try:
            yield from files([path])
        except InputError:
            yield path


def _once(items: Iterable[tuple[str, bool]]) -> tuple[list[tuple[str, bool]], list[str]]:
    """The inputs in order, each file once; and the names that stood for a file already listed."""
    seen: dict[object, None] = {}
    kept, repeated = [], []
    for path, sniffed in items:
        key: object = path
        if path != "-":
            try:
                stat = Path(path).stat()
                key = (stat.st_dev, stat.st_ino)
            except (OSError, ValueError):
                key = path
        if key in seen:
            repeated.append(path)
        else:
            seen[key] = None
            kept.append((path, sniffed))
    return kept, repeated


def _check(paths: Iterable[str]) -> dict[str, InputError]:
    """What cannot be read, and why. Nothing is opened: a pipe can be opened only once."""
    return {path: fault for path in paths if path != "-" and (fault := _fault(path))}


def _all_of(faults: Iterable[InputError]) -> InputError:
    """One error for all inputs."""
    every = list(faults)
    return every[0] if len(every) == 1 else InputError(
        "; ".join(f.message for f in every), hint="nothing was read",
        zh="；".join(f.zh or f.message for f in every), hint_zh="未读取任何内容",
    )  # fmt: skip


def _not_opened(path: str, fault: InputError) -> Text:
    """The note about an input that was left out."""
    why = fault.message.removeprefix(repr(path)).removeprefix(path).lstrip(": ")
    return Text(f"was not read: {why}", f"未读取：{why}")


def _fault(path: str) -> InputError | None:
    try:
        here = Path(path)
        if here.is_dir():
            return InputError(
                f"{path} is a directory", hint=f"name the files in it, for instance {here / '*'}",
                zh=f"{path} 是文件夹", hint_zh=f"请指定其中的文件，例如 {here / '*'}",
            )  # fmt: skip
        mode = here.stat().st_mode
        if stat.S_ISBLK(mode) or (
            stat.S_ISCHR(mode) and os.path.realpath(path) != os.devnull and not _is_terminal(here)
        ):
            return InputError(
                f"{path} is a device without an end",
                hint="name a file, or pipe what is to be read: ... --log -",
                zh=f"{path} 是没有结尾的设备",
                hint_zh="请指定文件，或通过管道输入：... --log -",
            )
    except FileNotFoundError:
        return InputError(f"{path}: no such file", zh=f"没有此文件：{path}")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        return InputError(f"{path!r} cannot be read: {why}", zh=f"无法读取 {path!r}：{why}")
    if not os.access(path, os.R_OK):
        return InputError(
            f"{path} may not be read by this user", hint="kernel logs often need root: try sudo",
            zh=f"当前用户无权读取 {path}", hint_zh="内核日志常需 root：请试 sudo",
        )  # fmt: skip
    return None


def _is_terminal(path: Path) -> bool:
    """``/dev/stdin`` and the like, where somebody types."""
    return any(os.path.realpath(f"/proc/self/fd/{n}") == os.path.realpath(path) and os.isatty(n) for n in range(3))


# --- logs ---------------------------------------------------------------------------------


def _read_log(path: str, g: _Gathering) -> None:
    """Read as a log, unless it holds several outputs, or no line of it means anything and the content is that of a known document."""
    if path not in g.scanned and _holds_several(path):
        _read_input(path, g)
        return
    result = g.scanned.pop(path, None) or scan([path], formats.log_formats(), g.context, g.progress)
    matched = any(i.matches for i in result.inputs) or not result.inputs
    if matched and (any(o.status is Status.OK for o in result.observations) or not result.inputs):
        _take(result.observations, result.notes, result.inputs, g)
        return
    kind = _kind_of(path) if path != "-" and Path(path).is_file() else None
    if isinstance(kind, DocumentFormat):
        g.notes.append(
            _note(
                path, f"is {kind.title}, not a log, and was read as such", f"是 {kind.title} 而非日志，已按该类型读取"
            )
        )
        _read_input(path, g)
        return
    _take(result.observations, result.notes, result.inputs, g)
    if kind is None and not matched and not any(n.problem for n in result.notes):
        g.notes.append(_note(_shown(path), "no line of a known log was found in it; it was searched for known messages only",
                             "其中没有已知日志格式的行，仅按已知消息检索"))  # fmt: skip


def _holds_several(path: str) -> bool:
    """Whether a file holds the outputs of several commands, or of several machines: each of them is read as what it is."""
    if path == "-" or not Path(path).is_file() or Path(path).stat().st_size > DOCUMENT_CAP:
        return False
    from probes.parse import bug_report

    _, stream, _, _ = opened(path)
    with stream:
        head = _text(_fill(unpacked(stream), HEAD))
    return bug_report.sniff(head) > 0 or (bool(headed(head)[0]) and _by_machine(head, recognised(head)[0]))


def _ahead(paths: Sequence[str], g: _Gathering, size: int) -> dict[str, ScanResult]:
    """Large logs, where there are several and more than one core: each in a process of its own. What fails is read again here."""
    large = [path for path in paths if path != "-" and Path(path).is_file() and Path(path).stat().st_size >= size]
    if len(large) < 2:
        return {}
    from probes.many import cores, in_processes

    if cores() < 2:
        return {}
    found = in_processes(large, partial(_scanned, g.host), progress=g.progress)
    return {outcome.path: outcome.value for outcome in found if outcome.value is not None}


def _scanned(host: str, path: str, progress: Progress | None) -> ScanResult:
    return scan([path], formats.log_formats(), partial(Context, host=host), progress)


def _take(observations: Sequence[Observation], notes: Sequence[Note], done: Sequence[Scanned], g: _Gathering) -> None:
    g.observations += observations
    _note_all(notes, g)
    g.kinds += [(i.source, i.formats) for i in done]


def _note_all(notes: Sequence[Note], g: _Gathering) -> None:
    """The scanner's notes; an input with a problem was read in part, unless it is just empty."""
    g.notes += notes
    g.cut |= dict.fromkeys(n.source for n in notes if n.problem and n.text.en != EMPTY.en)


def _kind_of(path: str) -> Format | None:
    """What recognises the content of a file, if anything does."""
    _, stream, _, _ = opened(path)
    with stream:
        return _sniff(_text(_fill(unpacked(stream), HEAD)))


def _sniff(head: str) -> Format | None:
    found = recognised(head)[0]
    return _labelled(head, found) or found


def _labelled(head: str, found: Format | None) -> DocumentFormat | None:
    """The document that stands behind the labels of an input's lines; None where the input, with them, is surer to be one."""
    sure = found.sniff(head) if isinstance(found, DocumentFormat) else 0
    for part in labelled(bare(head, commands=False).text)[0]:
        kind = recognised(part.text[:PEEK])[0]
        if isinstance(kind, DocumentFormat) and kind.files is None and kind.sniff(bare(part.text).text) >= sure:
            return kind
    return None


def _by_machine(head: str, found: Format | None) -> bool:
    """Whether headings name the machines of what stands below them, and something is known there. Names alone head no part of
    an output that is surer to be one as it stands.
    """
    parts, _, sure = headed(bare(head, commands=False).text)
    kinds = [(part.text, *recognised(part.text[:PEEK])) for part in parts]
    if sure:
        return any(kind is not None or _not_reached(text) for text, kind, _ in kinds)
    least = found.sniff(head) if found is not None else 1
    return any(kind is not None and kind.sniff(bare(text, commands).text) >= least for text, kind, commands in kinds)


def _binary(head: bytes) -> DocumentFormat | None:
    """The format of a file that is no text, by its first bytes."""
    from probes import registry  # loads every parser

    return next((f for f in registry.document_formats() if f.binary is not None and f.binary(head)), None)


def _shown(path: str) -> str:
    """The name for people of an input."""
    return STDIN if path == "-" else path


def _note(name: str, en: str, zh: str, problem: bool = False) -> Note:
    return Note(name, Text(en, zh), problem)


# --- recognised inputs --------------------------------------------------------------------


def _read_input(path: str, g: _Gathering) -> None:
    name, stream, size, close = opened(path)
    try:
        _read_stream(name, stream, g, size, again=path if path != "-" and Path(path).is_file() else None)
    finally:
        if close:
            stream.close()


def _read_stream(name: str, stream: BinaryIO, g: _Gathering, size: int | None, again: str | None = None) -> None:
    """Recognise and read one stream. `again` is a path that can be opened a second time."""
    reader = unpacked(stream)
    head = _fill(reader, HEAD)
    if not head:
        if reader.problem is None:
            g.notes.append(Note(name, EMPTY))
        else:
            g.lost(name, reader.problem)
        return
    if (strange := foreign(head, name)) is not None:
        if again is not None and (ours := _binary(head)) is not None:
            g.whole.setdefault(ours, []).append(again)
        else:
            g.lost(name, strange)
        return
    found, commands = recognised(_text(head))
    if _by_machine(_text(head), found):
        _read_parts(name, _all(name, head, reader, g, size), g, reader.problem is None, headed)
        return
    if _labelled(_text(head), found) is not None:
        text = _all(name, head, reader, g, size)
        from probes.registry import LOG  # all parsers are loaded by now

        surely = isinstance(found, LogFormat) and found.sniff(_text(head)) >= LOG
        logged = surely and _read_as_log(name, text, g)
        _read_parts(name, text, g, reader.problem is None, labelled, logged)
        return
    if isinstance(found, DocumentFormat) and found.files is not None and again is not None:
        g.whole.setdefault(found, []).append(again)
        return
    if isinstance(found, DocumentFormat):
        text = _all(name, head, reader, g, size)
        _read_text(found, name, text, g, commands, reader.problem is None)
        return
    head += _fill(reader, PASTE - len(head)) if len(head) == HEAD else b""
    if len(head) < PASTE and _read_outputs(found, name, _text(head), g, commands, reader.problem is None):
        _take_words(name, _text(head), g)
        return
    source = again if again is not None else _joined(head, reader, name)
    result = scan([source], formats.log_formats(), g.context, g.progress)
    if found is None and not any(o.status.answered for o in result.observations):
        _unknown(name, _text(head), result.notes, g)
        return
    _take(result.observations, result.notes, result.inputs, g)
    if len(head) < PASTE:
        _take_words(name, _text(head), g)
    _unreached(name, _text(head), g)


_KNOWN_BY = ("nvidia-smi -q text", "dcgmi diag", "kernel log, system log or journal", "NCCL and torch.distributed logs")


def _unknown(name: str, text: str, notes: Sequence[Note], g: _Gathering) -> None:
    """What nobody could read may hold anything."""
    kinds = len(formats.index())
    _note_all(notes, g)
    g.lost(
        name,
        Text(
            f"content not recognised: it is none of the {kinds} kinds that are read ({', '.join(_KNOWN_BY)}, ...); a log of any kind "
            "is searched with --log",
            f"无法识别内容：不属于可读取的 {kinds} 种类型（{'、'.join(_KNOWN_BY)} 等）；任何日志都可用 --log 搜索",
        ),
    )
    g.observations.append(
        Observation(LAYOUT_KNOWN, node(g.host), False, source=Source("", name), detail=world_of(text))
    )
    g.observations += prose.told(text, name, g.host)


def _all(name: str, head: bytes, reader: Reader, g: _Gathering, size: int | None) -> str:
    """The text of a document, up to the cap."""
    data = bytearray(head)
    while len(data) <= DOCUMENT_CAP and (part := reader.read(1 << 20)):
        data += part
        if g.progress is not None:
            g.progress(name, reader.consumed, size)
    if len(data) > DOCUMENT_CAP:
        mib = DOCUMENT_CAP >> 20
        g.lost(name, Text(f"is longer than {mib} MiB: the rest was not read", f"超过 {mib} MiB：其余部分未读取"))
        del data[DOCUMENT_CAP:]
    if reader.problem is not None:
        g.lost(name, reader.problem)
    return _text(bytes(data))


def _read_text(
    found: DocumentFormat, name: str, text: str, g: _Gathering, commands: bool, unbroken: bool, part: Part | None = None
) -> None:
    """Read a document, and what else stands in its text."""
    if not _read_outputs(found, name, text, g, commands, unbroken, part):
        _read_document(found, name, text, g, commands, unbroken, part)
    _take_words(name, text, g, part)


def _take_words(name: str, text: str, g: _Gathering, part: Part | None = None) -> None:
    """What sentences in a text tell of XIDs that nothing else in it told."""
    known = {o.value.code for o in g.observations if o.fact == "xid" and isinstance(o.value, Event)}
    every = prose.told(text, name, (part.host if part else "") or g.host)
    said = [o for o in every if (o.value.code if isinstance(o.value, Event) else o.value) not in known]
    g.observations += [_placed(o, part.numbers) for o in said] if part else said


def _read_outputs(
    found: Format | None, name: str, text: str, g: _Gathering, commands: bool, unbroken: bool, part: Part | None = None
) -> bool:
    """Read the outputs that stand in one text, each as what it is, and the lines of logs among them; False where it is a single one."""
    from probes.parse import bug_report

    if found is bug_report.FORMAT:  # its parser does so with each of its sections
        return False
    plain = bare(text, commands=False)
    logged = standing(plain.text)
    if logged:
        rest = ("" if n in logged else line for n, line in lines_of(plain.text))
        found, commands = recognised("\n".join(rest)[:HEAD])
    outputs = apart(plain.text, logged, found, commands)
    if outputs is None:
        return False
    if plain.found:
        g.notes.append(Note(name, plain.words))
    host = part.host if part else ""
    numbers = part.numbers if part else range(1, len(lines_of(plain.text)) + 1)
    for piece in outputs.pieces:
        own = Part(part.label if part else "", host, piece.text, tuple(numbers[piece.first - 1 : piece.last]))
        _read_document(piece.format, name, piece.text, g, piece.commands, unbroken, own)
    _read_logs(name, outputs.logs, g, Part(part.label if part else "", host, "", tuple(numbers)))
    told = {o.source.line for o in g.observations if o.source.call == name}
    for n in [n for n in outputs.troubled if numbers[n - 1] not in told][:1]:
        said = excerpt(clean(lines_of(plain.text)[n - 1].text.strip()), 100)
        why = Text(
            f"a part of it is in no known layout, and tells of trouble: {said}",
            f"其中一部分不是已知格式，且提到异常：{said}",
        )
        g.lost(name, _of_part(part, _not_read(why, numbers[n - 1])))
    return True


def _read_logs(name: str, text: str, g: _Gathering, part: Part) -> bool:
    """Read the lines of logs that stand among outputs; False where they tell nothing.

    What is not among them may have occurred, unless they are a log of their own.
    """
    from probes.parse import bug_report

    result = scan([Named(text, name)], formats.log_formats(), lambda _: Context(name, part.host or g.host))
    own = "\n".join(line for line in text.split("\n") if line.strip())
    sure = {f.name: f.sniff(own) for f in formats.log_formats()}

    def tells(o: Observation) -> bool:
        certain = sure.get(o.source.probe, 0)
        return o.status is Status.OK or (certain >= bug_report.CERTAIN and o.window is not None)

    told = [o for o in result.observations if tells(o)]
    g.observations += [_placed(o, part.numbers) for o in told]
    _note_all(result.notes, g)
    names = dict.fromkeys(o.source.probe for o in told)
    if names:
        g.kinds.append((name, tuple(names)))
    return bool(names)


def _read_document(
    found: DocumentFormat, name: str, text: str, g: _Gathering, commands: bool, unbroken: bool, part: Part | None = None
) -> None:
    """Read one document; `part` is what its lines were labelled with, `unbroken` whether its file could be read to its end."""
    written, plain = text, bare(text, commands)
    if plain.found:
        text = plain.text
        g.notes.append(Note(name, plain.words))
    context = Context(name, (part.host if part else "") or g.host)
    told = found.parse(text, context)
    state, why = whole(bare(text).text)
    if state is Whole.BROKEN and not any(o.status is Status.OK for o in told) and (rest := closed(bare(text).text)):
        told = [*told, *found.parse(rest, context)]  # what was still whole says what it says
    missed = next((o.detail for o in told if o.status is Status.FAILED and says_cut(o.detail)), "")
    if unbroken and (state is Whole.BROKEN or missed):
        g.lost(name, _of_part(part, why or Text(f"is not whole: {missed}", f"不完整：{missed}")))
    for line, what in found.unread(text) if found.unread is not None else ():
        at = part.numbers[line - 1] if part and 0 < line <= len(part.numbers) else line
        g.lost(name, _of_part(part, _not_read(what, at)))
    looks = moments.moments(written) if told else moments.Moments()
    looks = looks if looks.times else moments.of_name(name)
    told = [_ordered(o, g.order) for o in still_told(moments.dated(told, looks), looks)]
    g.observations += [_placed(o, part.numbers) for o in told] if part else told
    if state is Whole.UNTOLD:
        g.observations.append(Observation(END_KNOWN, node(context.host), False, source=Source(found.name, name)))
    g.kinds.append((name, (found.name,)))


def _ordered(o: Observation, order: int) -> Observation:
    """A value of which nothing tells the time, with the place of its file among those that were given."""
    timeless = order and o.at is None and o.status is Status.OK and not isinstance(o.value, Event)
    return replace(o, source=replace(o.source, order=order)) if timeless else o


def _not_read(what: str | Text, line: int) -> Text:
    """Which command's output, or why what stands at a line is not read."""
    if isinstance(what, Text):
        return Text(f"{what.en} (line {line})", f"{what.zh}（第 {line} 行）")
    command = excerpt(clean(what), 80)
    return Text(f"what `{command}` printed is not read (line {line})", f"未读取 `{command}` 的输出（第 {line} 行）")


def _read_as_log(name: str, text: str, g: _Gathering, part: Part | None = None) -> bool:
    """Read a text, or a part of one, as a log, unless no line of it tells anything; a part also where it is sure to be a log."""
    host = part.host if part else ""
    result = scan([Named(text, name)], formats.log_formats(), lambda n: Context(n, host or g.host))
    known = part is not None and isinstance(recognised(part.text[:HEAD])[0], LogFormat)
    if any(o.status is Status.OK for o in result.observations) or known:
        told = [_placed(o, part.numbers) for o in result.observations] if part else result.observations
        _take(told, result.notes, result.inputs, g)
        return True
    return False


def _read_parts(
    name: str,
    text: str,
    g: _Gathering,
    unbroken: bool,
    split: Callable[[str], tuple[Any, ...]],
    logged: bool = False,
) -> None:
    """Read the parts of a text, of each machine, task or pod as an input of its own; `split` tells them apart. Where the text
    was read as a log already (`logged`), its documents are what is left to read.
    """
    text = bare(text, commands=False).text
    parts, left, *_ = split(text)
    read = set() if logged else _read_unlabelled(name, text, left, g)
    _note_parts(name, parts, 0 if logged else len(left) - len(read), split is labelled, g)
    for part in parts:
        found, commands = recognised(part.text[:HEAD])
        if isinstance(found, DocumentFormat) and found.files is None:
            _read_text(found, name, part.text, g, commands, unbroken, part)
        elif not logged and not _read_as_log(name, part.text, g, part):
            _part_unknown(name, part, g)


def _read_unlabelled(name: str, text: str, left: Sequence[Line], g: _Gathering) -> set[int]:
    """Read the lines of a log that stand among those with a label and have none; their numbers."""
    own = {line.number: line.text for line in left}
    places = range(1, len(lines_of(text)) + 1)
    logged = standing("\n".join(own.get(n, "") for n in places)) if own else set()
    if logged:
        told = "\n".join(own[n] if n in logged else "" for n in places)
        _read_logs(name, told, g, Part("", "", "", tuple(places)))
    return logged


def _part_unknown(name: str, part: Part, g: _Gathering) -> None:
    """What stands in a part and nobody could read; why the machine printed nothing of itself, where that is told."""
    if said := _not_reached(part.text):
        why = Text(f"was not reached, so nothing is known of it: {said}", f"未能连接，因此对它一无所知：{said}")
    else:
        said = excerpt(next((line for line in part.text.splitlines() if line.strip()), ""), 160)
        why = Text(f"content not recognised: {said}", f"无法识别内容：{said}")
    g.lost(name, _of_part(part, why))
    at = Source("", name, part.numbers[0] if part.numbers else None)
    g.observations.append(Observation(LAYOUT_KNOWN, node(part.host or g.host), False, source=at))


def _unreached(name: str, head: str, g: _Gathering) -> None:
    """Machines of a gathered log of which ssh's own words are all that stands there."""
    for part in labelled(bare(head, commands=False).text)[0] if _NOT_SSH.search(head) else ():
        written = [line for line in part.text.splitlines() if line.strip()]
        if part.host and written and all(_NOT_SSH.fullmatch(line) for line in written):
            _part_unknown(name, part, g)


# ssh: connect to host gpu05 port 22: No route to host       ssh exited with exit code 255       "unreachable": true,
_NOT_SSH = lazy(
    r"(?m)^.{0,200}(?:ssh: (?:connect to host|Could not resolve hostname)|[Pp]ermission denied \((?:publickey|keyboard|password)|Host key verification failed"
    r"|kex_exchange_identification|Connection (?:closed|reset) by \S{1,80} port|\bexited with exit code 255|Data could not be sent to remote host).{0,200}$"
)


def _not_reached(text: str) -> str:
    """The line in which ssh says that it did not get to a machine; empty where there is none."""
    m = _NOT_SSH.search(text[:PEEK])
    return excerpt(clean(m[0].strip()), 160) if m else ""


def _note_parts(name: str, parts: Sequence[Part], left: int, labelled: bool, g: _Gathering) -> None:
    names = [part.label for part in parts if part.label]
    of, more = ", ".join(names[:3]), f" (+{len(names) - 3})" if len(names) > 3 else ""
    if not labelled:
        g.notes.append(
            _note(
                name,
                f"what stands below the heading of each machine was read by itself: {of}{more}",
                f"已按标题分主机读取：{of}{more}",
            )
        )
        if left:
            g.lost(
                name,
                Text(f"{left} lines above the first heading were not read", f"第一个标题之前有 {left} 行，未读取"),
            )
        return
    en, zh = (
        (f"the label of its machine, task or pod: {of}{more}", f"标签（主机、任务或 Pod）：{of}{more}")
        if names
        else ("its time", "时间")
    )
    g.notes.append(_note(name, f"each line was read without {en}", f"已去掉每行前的{zh}"))
    if left:
        g.notes.append(
            _note(name, f"{left} lines have no such label and were not read", f"有 {left} 行没有标签，未读取")
        )


def _of_part(part: Part | None, why: Text) -> Text:
    return Text(f"{part.label}: {why.en}", f"{part.label}：{why.zh}") if part is not None and part.label else why


def _placed(o: Observation, numbers: Sequence[int]) -> Observation:
    """What was seen in a part, at its line of the whole text."""
    line = o.source.line
    return (
        o
        if line is None or not 0 < line <= len(numbers)
        else replace(o, source=replace(o.source, line=numbers[line - 1]))
    )


def _read_together(g: _Gathering) -> None:
    """Read the files of which several are one thing: the traces of a job's ranks."""
    for found, paths in g.whole.items():
        assert found.files is not None
        before = set(g.cut)
        g.observations += found.files(paths, g.progress, g.lost)
        g.kinds += [(path, (found.name,)) for path in paths if path in before or path not in g.cut]


def _fill(reader: Reader, size: int) -> bytes:
    """`size` bytes of text, fewer only at the end."""
    out = bytearray()
    while len(out) < size and (part := reader.read(size - len(out))):
        out += part
    return bytes(out)


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace")


class _Joined(io.RawIOBase):
    """The bytes that were looked at, then the rest of their stream."""

    def __init__(self, head: bytes, reader: Reader) -> None:
        self._head = head
        self._reader = reader

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        part = self._head[: len(view)] or self._reader.read(len(view))
        self._head = self._head[len(view) :]
        view[: len(part)] = part
        return len(part)


def _joined(head: bytes, reader: Reader, name: str) -> BinaryIO:
    stream = _Joined(head, reader)
    stream.name = name  # type: ignore[attr-defined]  # how `scan` learns what to call a stream
    return io.BufferedReader(stream)
