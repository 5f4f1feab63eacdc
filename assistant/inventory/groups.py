"""Groups of machines: names, sets of names, and other groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assistant.inventory.words import NAME, NO_NAME, Faults
from assistant.session.inventory import nearest
from assistant.session.nodeset import expand
from knowledge.text import excerpt

DEEPEST = 32  # groups within groups


def resolved(groups: Mapping[str, Any], called: Mapping[str, str], fault: Faults) -> dict[str, tuple[str, ...]]:
    """The machines of each group, in the order in which they are written, each once.

    `called` are the names and aliases of machines. `fault` is told what is wrong.
    """
    words = {name: _words(name, value, called, fault) for name, value in groups.items()}
    done: dict[str, tuple[str, ...]] = {}
    for name in words:
        _members(name, words, called, done, [], fault)
    return {name: done.get(name, ()) for name in words}


def _words(name: str, value: Any, called: Mapping[str, str], fault: Faults) -> list[str]:
    """What a group is said to be made of."""
    key = ("groups", name)
    if not NAME.fullmatch(name):
        fault(key, f"{excerpt(name, 60)!r} {NO_NAME}", "")
    if name in called:
        fault(key, f"{name!r} is the name of a machine already", "")
    said = [value] if isinstance(value, str) else value
    if not isinstance(said, list) or not all(isinstance(w, str) for w in said):
        fault(key, f"a group is a set of machines or a list of them, not {excerpt(repr(value), 60)}", "")
        return []
    try:
        return [word for part in said for word in (expand(part) if part.strip() else ())]
    except ValueError as error:
        fault(key, str(error), "")
        return []


def _members(
    name: str, words: Mapping[str, Sequence[str]], called: Mapping[str, str], done: dict[str, tuple[str, ...]],
    under_way: list[str], fault: Faults,
) -> tuple[str, ...]:  # fmt: skip
    """The machines of one group; those of the groups within it come first into `done`."""
    if name in done:
        return done[name]
    out: dict[str, None] = {}
    for word in words[name]:
        group = word.removeprefix("@")
        if not word.startswith("@") and word in called:
            out[called[word]] = None
        elif group in words:
            if group in (*under_way, name) or len(under_way) >= DEEPEST:
                chain = excerpt(" > ".join((*under_way, name, group)), 200)
                fault(("groups", name), f"groups within groups have no end: {chain}", "")
                continue
            out.update(dict.fromkeys(_members(group, words, called, done, [*under_way, name], fault)))
        else:
            near = nearest(group, tuple(dict.fromkeys((*called, *words))))
            fault(
                ("groups", name),
                f"there is no machine and no group {excerpt(word, 60)!r}",
                f"did you mean {', '.join(near)}?" if near else "",
            )
    done[name] = tuple(out)
    return done[name]
