"""What the words of a grant reach: kinds of acts, and machines. A word that reaches nothing is a fault: it was meant to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from assistant.inventory.model import Hosts
from assistant.inventory.words import NAME, NO_NAME
from assistant.rights.model import COSTS, globs
from assistant.session.inventory import nearest
from assistant.session.nodeset import expand
from knowledge.errors import nearest_hint
from knowledge.text import excerpt

WHOLE = ("check", "collect", "profile")  # that stand for several probes at once
_GLOB = re.compile(r"[A-Za-z0-9*?][A-Za-z0-9._*?-]{0,252}")
_STEP = re.compile(rf"{_GLOB.pattern}/{_GLOB.pattern}|\*")


@cache
def known_acts() -> tuple[str, ...]:
    """What can be granted by its name; steps of runbooks come beside: a site has its own."""
    from probes.active import tests
    from probes.live import probes

    names = [p.name for p in probes() if p.name not in tests_as_probes()]
    return (*WHOLE, *names, *(f"test:{t.name}" for t in tests()))


@cache
def tests_as_probes() -> Mapping[str, str]:
    """Active tests are probes too: by either name they are granted as tests, so that ``*`` never means one."""
    from probes.active import tests

    return {t.name: f"test:{t.name}" for t in tests()}


@cache
def terms(what: str) -> tuple[str, str, bool]:
    """Cost, risk, and whether it is privileged, of a probe, a test, or a word for several; a step says its own risk.

    Tests load the machine until a job would feel it: disruptive. What a probe only reads it reads with the rights that
    gpudiag has anyway; privileged is one that puts a load on the machine, or something into a job, by rights that others lack.
    """
    from probes.live import Cost, probes

    name = what.removeprefix("test:")
    spec = next((p for p in probes() if p.name == name), None)
    if name in tests_as_probes():
        return "heavy", "disruptive", spec is None or bool(spec.needs.privileges)
    if spec is None:
        return "cheap" if what.startswith("step:") else "seconds", "safe", False
    felt = spec.cost is Cost.HEAVY and bool(spec.needs.privileges and spec.side_effects)
    return COSTS[spec.cost], "safe", felt


def acts_of(word: str) -> tuple[str, str] | None:
    """What is wrong with `word`, which says what may be run, and the nearest right one; None when it is right."""
    kind, colon, name = word.partition(":")
    if colon and kind == "step":
        if _STEP.fullmatch(name):
            return _no_step(*name.split("/")) if "/" in name else None
        return f"{excerpt(word, 60)!r} is no step of a runbook", "step:RUNBOOK/STEP, such as step:gpu-off-bus/drain"
    if any(globs((word,), (word,), within=":").has(act) for act in known_acts()):
        return None
    if colon and kind != "test":
        return f"{excerpt(word, 60)!r} is nothing that can be run", "a probe, test:NAME, step:RUNBOOK/STEP"
    said = f"there is no {'test' if colon else 'probe'} {excerpt(word, 60)!r}"
    return said, nearest_hint(word, known_acts()) or "gpudiag test lists tests, docs/reference/probes.md probes"


def _no_step(book: str, step: str) -> tuple[str, str] | None:
    """What is wrong with a step of a runbook that is known here; a site has runbooks that may not be."""
    from knowledge.runbook import all_runbooks

    found = next((b for b in all_runbooks() if b.id == book), None)
    steps = [s.id for s in found.steps] if found else []
    if found is None or any(globs((step,), (step,)).has(s) for s in steps):
        return None
    return f"runbook {book} has no step {excerpt(step, 60)!r}", nearest_hint(step, steps)


def no_runbook(word: str) -> tuple[str, str] | None:
    """That no runbook here is called as `word`, a step, has it: it may be another site's, or on another machine."""
    from knowledge.runbook import all_runbooks

    book = word.removeprefix("step:").partition("/")[0]
    known = [b.id for b in all_runbooks()]
    if not word.startswith("step:") or "/" not in word or any(globs((book,), (book,)).has(b) for b in known):
        return None
    return f"no runbook here is called {excerpt(book, 60)!r}, so this grants nothing", nearest_hint(book, known)


def no_machine(word: str, names: Sequence[str], hosts: Hosts) -> tuple[str, str] | None:
    """That no machine of the inventory is called as `word` says; nothing where there is none."""
    known = list(hosts.called.values())
    if not known or any(globs((name,), (name,)).has(k) for name in names for k in known):
        return None
    near = nearest(word, tuple(hosts.called))
    return (
        f"no machine of the inventory is called {excerpt(word, 60)!r}",
        f"did you mean {', '.join(near)}?" if near else "",
    )


def machines_of(word: str, hosts: Hosts) -> tuple[list[str], *tuple[str, ...]]:
    """The names, wildcards still in them, that `word` means; then what is wrong with it, and a hint."""
    if word.startswith("@"):
        if (members := hosts.groups.get(word[1:])) is not None:
            return (list(members),)
        near = nearest(word[1:], tuple(hosts.groups))
        hint = f"did you mean {', '.join('@' + n for n in near)}?" if near else "gpudiag config hosts lists groups"
        return [], f"there is no group {excerpt(word, 60)!r} of machines", hint
    try:
        names = expand(word)
    except ValueError as error:
        return [], str(error), ""
    for name in names:
        if not _GLOB.fullmatch(name):
            return [], f"{excerpt(word, 60)!r} {NO_NAME}", "* and ? stand for others"
    return ([hosts.called.get(name, name) if NAME.fullmatch(name) else name for name in names],)
