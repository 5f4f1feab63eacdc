"""A folder of recordings as nodes: what is in it, and what each says, read in a process of its own.

Rules over a machine take a quarter of a second of a processor; the process that shows them has none to spare. The child
(``python -m assistant.nodes``) prints one JSON object a recording, as soon as it has read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from assistant.nodes import Found, Look, worst
from knowledge.language import NO_TEXT, Text

if TYPE_CHECKING:
    import argparse

    from assistant.diagnosis import Diagnosis
    from knowledge.observation import Observation
    from rules.loader import RuleSet

MOST = 4096  # recordings of one folder, as many as nodes of a set
_PACKED = (".tar.gz", ".tgz", ".zip")
_REPORT = "nvidia-bug-report"


class Told(NamedTuple):
    """One recording: whose it is, and what it says; or why it cannot be read."""

    path: str
    host: str
    look: Look | None
    trouble: Text = NO_TEXT


def found_in(folder: str) -> list[str]:
    """Paths of what looks like a recording in a folder, or one level further down, by name. OSError when it cannot be listed."""
    out: list[str] = []
    for entry in sorted(Path(folder).iterdir()):
        if _looks_like_one(entry):
            out.append(str(entry))
        elif entry.is_dir() and not entry.name.startswith("."):
            try:
                out += [str(inner) for inner in sorted(entry.iterdir()) if _looks_like_one(inner)]
            except OSError:  # a folder of somebody else's: what stands beside it is shown
                continue
        if len(out) >= MOST:
            break
    return out[:MOST]


def _looks_like_one(path: Path) -> bool:
    """Told by its name: the content is looked at when it is read."""
    name = path.name
    if name.startswith(_REPORT) and path.suffix in (".gz", ".log"):
        return True
    return name.endswith(_PACKED) if not path.is_dir() else (path / "manifest.json").is_file()


def stamp(path: str) -> tuple[int, int]:
    """Something that is another when the recording was written anew."""
    target = Path(path)
    try:
        stat = (target / "manifest.json" if target.is_dir() else target).stat()
    except OSError:
        return (0, 0)
    return (stat.st_mtime_ns, stat.st_size)


# --- in the child -------------------------------------------------------------------------


def told_of(path: str, ruleset: RuleSet) -> Told:
    """Read one recording and conclude. What is wrong with it is told; nothing is raised for it."""
    from assistant import machine
    from assistant.diagnosis import diagnose
    from knowledge.errors import GpudiagError

    try:
        _, look = machine.bundle(path)
        d = diagnose([*look.observations, *look.earlier], ruleset, as_of=look.as_of, whole=look.whole, seen="recorded")
    except (GpudiagError, OSError) as error:
        why = getattr(error, "message", str(error)).replace(path, Path(path).name)  # its folder is told elsewhere
        return Told(path, "", None, Text(why))
    return Told(path, look.host, look_of(d, "bundle", path))


def look_of(d: Diagnosis, source: str, place: str = "") -> Look:
    """A diagnosis as a list shows it."""
    from assistant.store.codec import subject_text

    findings = worst(Found(f.id, f.title, str(f.severity), subject_text(f.subject), _since(f.events)) for f in d.leads)
    return Look(str(d.verdict.state), d.verdict.text, d.as_of, source, place, None, findings)


def _since(events: Iterable[Observation]) -> int | None:
    """The first time that its lines tell; a clock that means nothing outside of its machine tells none."""
    from knowledge.observation import Clock

    return min((e.at for e in events if e.at is not None and e.clock is Clock.REALTIME), default=None)


def ruleset_of(site: str | None, packs: Sequence[str], settings: Any) -> RuleSet:
    """The rules that the options name."""
    from types import SimpleNamespace
    from typing import cast

    from assistant.commands.rules import ruleset

    return ruleset(cast("argparse.Namespace", SimpleNamespace(site=site, rules=list(packs))), settings)


# --- between the two ----------------------------------------------------------------------


def line_of(told: Told) -> str:
    """One recording as one line."""
    look = told.look
    data: dict[str, Any] = {"path": told.path, "host": told.host, "trouble": _pair(told.trouble)}
    if look is not None:
        data["look"] = {
            "state": look.state, "text": _pair(look.text), "at": look.at,
            "findings": [[f.id, *_pair(f.title), f.severity, f.about, f.since] for f in look.findings],
        }  # fmt: skip
    return json.dumps(data, ensure_ascii=True)


def told_in(line: str) -> Told:
    """The opposite of `line_of`."""
    data: Mapping[str, Any] = json.loads(line)
    look = data.get("look")
    return Told(
        data["path"], data["host"],
        None if look is None else Look(
            look["state"], Text(*look["text"]), look["at"], "bundle", data["path"], None,
            tuple(Found(i, Text(en, zh), severity, about, since) for i, en, zh, severity, about, since in look["findings"]),
        ),
        Text(*data["trouble"]),
    )  # fmt: skip


def _pair(text: Text) -> list[str]:
    return [text.en, text.zh]


def looks_of(told: Iterable[Told]) -> tuple[dict[str, list[Look]], dict[str, Text]]:
    """Recordings by node: those that tell, and the troubles of those that cannot be read (under the name of their file)."""
    looks: dict[str, list[Look]] = {}
    troubles: dict[str, Text] = {}
    for one in told:
        if one.look is None:
            troubles[Path(one.path).name] = one.trouble
        else:
            looks.setdefault(one.host or named_after(one.path), []).append(one.look)
    return looks, troubles


def named_after(path: str) -> str:
    """A recording that does not name its machine goes by its file, or by the folder that it stands in."""
    target = Path(path)
    return target.parent.name if target.name == "bundle" and target.parent.name else target.name


def request(paths: Sequence[str], site: str | None, packs: Sequence[str]) -> str:
    """What the child is told on its standard input."""
    return json.dumps({"paths": list(paths), "site": site, "rules": list(packs)})


def answers(text: str, settings: Any) -> Iterator[str]:
    """In the child: a line for each recording of a request."""
    data = json.loads(text)
    ruleset = ruleset_of(data["site"], data["rules"], settings)
    for path in data["paths"]:
        yield line_of(told_of(path, ruleset))
