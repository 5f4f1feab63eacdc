"""``gpudiag collect``: record this machine, so that it can be diagnosed again, anywhere."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.commands.check import add_probing, probing, wish
from assistant.output import Progress, say
from knowledge.observation import Observation
from knowledge.observation_json import plain

if TYPE_CHECKING:
    from assistant.machine import Look

NAME = "collect"
_KEY_BYTES = 16  # 128 bits: nobody tries all keys
HELP = "record this machine in a bundle, for `gpudiag check --bundle`"


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
    add_probing(parser)


def run(args: argparse.Namespace) -> int:
    """Read the machine, write the bundle, say what is in it and what is not."""
    from assistant import machine

    _refuse(args.output)
    key = _key(args)
    bar = Progress(args.quiet)
    try:
        look = machine.here(args.settings, wish(args), probing(bar))
        bar("writing the bundle")
        hidden = save(look, args.output, key)
    finally:
        bar.done()
    for note in look.notes:
        say(f"gpudiag: {note}", args.quiet)
    told = sum(1 for r in look.results if r.status.answered)
    more = f", {hidden} names replaced by pseudonyms" if key is not None else ""
    say(f"gpudiag: {args.output}: {len(look.replies)} outputs of {told} probes that answered{more}", args.quiet)
    say(f"gpudiag: diagnose it anywhere with: gpudiag check --bundle {shlex.quote(args.output)}", args.quiet)
    return 0


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


def save(look: Look, path: str, key: bytes | None = None) -> int:
    """Write what was read of a machine, with pseudonyms when there is a `key`; how many names were replaced."""
    from assistant import __version__
    from assistant.machine import HISTORY
    from probes.bundle import write as write_bundle
    from probes.redact import redacted

    host, replies, hidden = look.host, list(look.replies), 0
    observations, earlier = look.observations, _lines(look.earlier)
    if key is not None:
        from assistant import machine
        from probes.host import ReplayHost

        host, replies, (earlier,), hidden = redacted(host, replies, key, (earlier,))
        observations = machine.recorded(ReplayHost(host, replies, look.as_of), look.recording).observations
    extra = {"observations.jsonl": _lines(observations)} | ({HISTORY: earlier} if earlier else {})
    write_bundle(path, host, replies, look.as_of, __version__, look.recording, extra)
    return hidden


def _lines(observations: Iterable[Observation]) -> bytes:
    """One JSON object a line."""
    rows = (json.dumps(plain(o), ensure_ascii=False, separators=(",", ":")) for o in observations)
    return b"".join(row.encode("utf-8", "surrogatepass") + b"\n" for row in rows)
