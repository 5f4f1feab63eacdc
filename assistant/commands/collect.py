"""``gpudiag collect``: record this machine, or another one (``--host``), so that it can be diagnosed again, anywhere."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assistant.commands.check import add_probing, probing, wish
from assistant.inventory.target import add_target
from assistant.output import Progress, say
from knowledge.observation import Observation
from knowledge.observation_json import plain

if TYPE_CHECKING:
    from assistant.inventory.model import Node
    from assistant.live.frames import Frame
    from assistant.machine import Look

NAME = "collect"
SEEDS, PLANTED = "redaction.txt", 120  # what was planted, as it came out; three of each kind
_KEY_BYTES = 16  # 128 bits: nobody tries all keys
HELP = "record this machine, or another one, in a bundle, for `gpudiag check --bundle`"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where to, what of, and whether names are hidden."""
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="FILE.tar.gz, FILE.zip, or a folder that does not exist yet",
    )
    parser.add_argument(
        "--redact",
        action="store_true",
        help="replace names, addresses and serial numbers by pseudonyms, each always by the same",
    )
    parser.add_argument(
        "--redact-key",
        metavar="FILE",
        help="redact with this secret: bundles made with the same one use the same pseudonyms",
    )
    parser.add_argument(
        "--for",
        type=_duration,
        default=0.0,
        dest="seconds",
        metavar="TIME",
        help="record the readings of the GPUs for so long first (60s, 5m): the bundle can then be played in the TUI",
    )
    parser.add_argument(
        "--every", type=_pace, default=1.0, metavar="TIME", help="time between two readings with --for (default: 1s)"
    )
    add_target(parser, host="record this node, which is reached from here")
    add_probing(parser)


def _duration(text: str, least: float = 1.0, most: float = 86_400.0) -> float:
    from knowledge.units import parse_duration

    seconds = float(text) if text.replace(".", "", 1).isdigit() else parse_duration(text) / 1e9
    if not least <= seconds <= most:
        raise ValueError(text)
    return seconds


def _pace(text: str) -> float:
    return _duration(text, 0.1, 60.0)


# argparse names the type in its complaint
_duration.__name__ = "time (60s, 5m; at most 24h)"
_pace.__name__ = "time between readings (100ms to 60s)"


def run(args: argparse.Namespace) -> int:
    """Read the machine, write the bundle, say what is in it and what is not."""
    from assistant.inventory.target import settle, target

    _refuse(args.output)
    settle(args)
    other, key = target(args), _key(args)
    _refuse_frames(args, other)
    bar = Progress(args.quiet)
    try:
        frames = _frames(args, bar) if args.seconds else []
        look = _look(args, bar, other)
        bar("writing the bundle")
        checked = save(look, args.output, key, frames)
    finally:
        bar.done()
    if args.seconds:
        _say_frames(frames, args.quiet)
    for note in look.notes:
        say(f"gpudiag: {note}", args.quiet)
    told = sum(1 for r in look.results if r.status.answered)
    more = f", {checked.names} names replaced by pseudonyms" if checked is not None else ""
    say(f"gpudiag: {args.output}: {len(look.replies)} outputs of {told} probes that answered{more}", args.quiet)
    if checked is not None:
        _say_checked(checked, args)
    say(f"gpudiag: diagnose it anywhere with: gpudiag check --bundle {shlex.quote(args.output)}", args.quiet)
    return 3 if look.broken else 0  # what came before the connection broke is there, the rest is not


def _say_checked(checked: Checked, args: argparse.Namespace) -> None:
    """The count of the counter-test; what is left is never kept quiet."""
    from knowledge.language import Text
    from knowledge.text import excerpt

    lang = args.settings.output.lang
    found = Text(
        f"looked for in the finished file: {checked.planted} planted secrets of {checked.kinds} kinds and {checked.names} names of this "
        f"machine; {len(checked.left)} left",
        f"已在成品文件中查找 {checked.kinds} 类共 {checked.planted} 个预置秘密和本机的 {checked.names} 个名称；残留 {len(checked.left)} 个",
    )  # fmt: skip
    say(f"gpudiag: {found.in_(lang)}", args.quiet and not checked.left)
    if checked.left:
        shown = ", ".join(excerpt(name, 60) for name in checked.left[:10])
        kept = Text(f"do not share it before you have looked at: {shown}", f"分享之前请先检查：{shown}")
        say(f"gpudiag: {kept.in_(lang)}")


def _look(args: argparse.Namespace, bar: Progress, other: Node | None) -> Look:
    """This machine, or another one. ConnectError when that cannot be reached."""
    from assistant import machine

    if other is None:
        return machine.here(args.settings, wish(args), probing(bar))
    bar(f"connecting to {other.name}")
    return machine.there(args.settings, other.reach, wish(args), probing(bar))


def _refuse_frames(args: argparse.Namespace, other: Node | None) -> None:
    """UsageError where the readings of another machine's GPUs over a time are wanted: they are of this one."""
    if other is None or not args.seconds:
        return
    from knowledge.errors import UsageError

    raise UsageError(
        f"--for records the GPUs of this machine, not those of {other.name}",
        hint=f"leave --for out, or run gpudiag collect on {other.name}",
    )


def _frames(args: argparse.Namespace, bar: Progress) -> list[Frame]:
    """The readings of the GPUs over a time, ahead of the probes: what those read belongs to its end."""
    from assistant.live.gather import gathered

    return gathered(
        args.settings, args.seconds, every=args.every,
        told=lambda gone: bar(f"recording the GPUs: {gone:.0f} of {args.seconds:g} s"),
    )  # fmt: skip


def _say_frames(frames: Sequence[Frame], quiet: bool) -> None:
    last = frames[-1] if frames else None
    if last is None:
        say("gpudiag: no reading of the GPUs came in time", quiet)
        return
    seconds = (last.at - frames[0].at) / 1e9
    if last.trouble:
        say(f"gpudiag: {last.trouble.en}", quiet)
    if last.gpus:
        say(f"gpudiag: the GPUs over {seconds:.0f} s: {len(frames)} x {len(last.gpus)}", quiet)


def _refuse(output: str) -> None:
    """UsageError for what is no place for a bundle, before the machine is read in vain."""
    from knowledge.errors import UsageError

    if output in ("", "-"):
        raise UsageError(
            "a bundle is not written to standard output", hint="name FILE.tar.gz, FILE.zip, or a new folder"
        )
    folder = Path(output).absolute().parent
    if not folder.is_dir():
        raise UsageError(f"{output} cannot be written: there is no folder {folder}")


def _key(args: argparse.Namespace) -> bytes | None:
    """What pseudonyms are made with: None for real names, empty for a key that is thrown away."""
    if not args.redact_key:
        return b"" if args.redact else None
    from knowledge.errors import InputError

    try:
        key = Path(args.redact_key).read_bytes().strip()
    except OSError as error:
        raise InputError(f"{args.redact_key} cannot be read: {error.strerror}") from None
    if len(key) < _KEY_BYTES:
        raise InputError(
            f"{args.redact_key} holds {len(key)} bytes: a key has at least {_KEY_BYTES}",
            hint="make one: head -c 32 /dev/urandom | base64 > KEYFILE",
        )
    return key


class Checked(NamedTuple):
    """A counter-test of a redacted bundle."""

    names: int  # that were replaced, and looked for in the finished file
    planted: int  # secrets that were put in ahead of the redaction
    kinds: int
    left: tuple[str, ...]  # of both, what stands in it all the same


def save(look: Look, path: str, key: bytes | None = None, frames: Sequence[Frame] = ()) -> Checked | None:
    """Write what was read of a machine, and `frames` beside it, with pseudonyms when there is a `key`: then it is read again."""
    from assistant import __version__
    from assistant.machine import HISTORY
    from probes.bundle import write as write_bundle
    from probes.redact import redacted

    host, replies = look.host, list(look.replies)
    observations, earlier, live = look.observations, _lines(look.earlier), _recorded(frames, key is None)
    if key is not None:
        from assistant import machine
        from probes.host import ReplayHost

        host, replies, (earlier, live, seeds), names = redacted(host, replies, key, (earlier, live, _seeds()))
        observations = machine.recorded(ReplayHost(host, replies, look.as_of), look.recording).observations
        sown = _seeds().decode().lower()
        names = frozenset(name for name in names if name.lower() not in sown) | {look.host}
    extra = {"observations.jsonl": _lines(observations)} | ({HISTORY: earlier} if earlier else {})
    if live:
        from assistant.live.recording import NAME as LIVE

        extra[LIVE] = live
    if key is not None:
        extra[SEEDS] = seeds
    write_bundle(path, host, replies, look.as_of, __version__, look.recording, extra)
    return _checked(path, names) if key is not None else None


def _seeds() -> bytes:
    """Lines with secrets that nobody has. They go into the bundle as they come out of the redaction."""
    from probes.planted import planted

    return "\n".join(p.line for p in planted(PLANTED, 0)).encode()


def _checked(path: str, names: Iterable[str]) -> Checked:
    """What the finished bundle, read anew, still holds of the planted secrets and of the names that were replaced."""
    from probes.planted import KINDS, planted
    from probes.redact_check import left

    secrets, wanted = [p.secret for p in planted(PLANTED, 0)], sorted(names)
    return Checked(len(wanted), len(secrets), len(KINDS), tuple(left(path, [*secrets, *wanted])))


def _recorded(frames: Sequence[Frame], commands: bool) -> bytes:
    """The file of `frames`; arguments of programs name things that no pattern knows, so a redacted one has none."""
    if not frames:
        return b""
    from assistant.live.recording import record

    return record(frames, commands=commands)


def _lines(observations: Iterable[Observation]) -> bytes:
    """One JSON object a line."""
    rows = (json.dumps(plain(o), ensure_ascii=False, separators=(",", ":")) for o in observations)
    return b"".join(row.encode("utf-8", "surrogatepass") + b"\n" for row in rows)
