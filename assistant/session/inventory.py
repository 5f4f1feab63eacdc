"""Which nodes and processes are known, and what a name that somebody said means among them.

Names are data: compared, shown, and never handed to a shell.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import normalize

from assistant.session.nodeset import expand, is_set
from knowledge.lazy import lazy
from knowledge.record import dataclass
from knowledge.text import clean, excerpt

if TYPE_CHECKING:
    from pathlib import Path

    from assistant.config import Settings
    from assistant.diagnosis import Diagnosis
    from assistant.inventory.model import Hosts

HERE = frozenset({
    "local", "localhost", "localhost.localdomain", "127.0.0.1", "::1", "here", "this", "this node", "this host",
    "this machine", "this server", "this box", "me", "本机", "本节点", "本地", "这里", "这台", "这台机器", "这台服务器",
    "这个节点", "这节点", "该节点", "此节点", "当前节点", "当前机器",
})  # fmt: skip
LONGEST = 255  # characters of a name that are looked at: DNS allows no more
COMPARED = 20_000  # names that a misspelt one is compared with
_PIECE = lazy("[0-9]+|[^0-9_ -]+")


class Known(NamedTuple):
    """A node, by the name that it is known by."""

    name: str


class Unknown(NamedTuple):
    """No node of that name; the nearest names, best first."""

    name: str
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Inventory:
    """The nodes that are known: this one first, each once."""

    hosts: tuple[str, ...]
    here: str  # what answers call this machine
    aliases: tuple[str, ...] = ()  # other names of this machine
    more: Callable[[], Iterable[str]] | None = field(default=None, compare=False, repr=False)  # asked when need be
    reach: frozenset[str] = frozenset()  # the nodes that can be looked at from here, beside this one
    called: Mapping[str, str] = field(default_factory=dict, compare=False)  # their other names, and whose each is

    @property
    def words(self) -> tuple[str, ...]:
        """Everything that is the name of a node: what a sentence is searched for."""
        return (*self.hosts, *self.called)

    def is_here(self, name: str) -> bool:
        """Whether `name` is one of this machine's names, or a word for it."""
        said = _plain(name)
        if said in HERE:
            return True
        if name in self.hosts or name in self.called:
            return name == self.here
        if any(_alike(said, _plain(own)) for own in (self.here, *self.aliases) if own):
            return True
        return self.index.find(excerpt(name, LONGEST)) == Known(self.here)

    @cached_property
    def every(self) -> tuple[str, ...]:
        """`hosts`, and those that it costs something to ask for."""
        return _once(self.here, self.aliases, (*self.hosts, *(self.more() if self.more else ())))

    @cached_property
    def index(self) -> Index:
        """`hosts`, to be looked up."""
        return Index(self.hosts)

    @cached_property
    def whole_index(self) -> Index:
        """`every`, to be looked up."""
        return Index(self.every)


# --- what is known ------------------------------------------------------------------------


def known(settings: Settings, diagnosis: Diagnosis | None = None, *, others: Hosts | None = None) -> Inventory:
    """The nodes that are known here: this machine, those of the history, those that `diagnosis` is about, and `others`, those
    of the inventory file (when it is left out: as the file says, if that is in order)."""
    own = os.uname().nodename
    here = settings.machine.name or own
    aliases = tuple(dict.fromkeys(n for n in (own, own.partition(".")[0], here.partition(".")[0]) if n and n != here))
    past, more = _remembered(settings.history.url)
    others = configured(settings) if others is None else others
    if others is None:
        return Inventory(_once(here, aliases, (here, *_of(diagnosis), *past)), here, aliases, more)
    hosts = _once(here, aliases, (here, *_of(diagnosis), *others.nodes, *past))
    called = {alias: name for alias, name in others.called.items() if alias != name}
    return Inventory(hosts, here, aliases, more, frozenset(others.nodes).intersection(hosts), called)


def configured(settings: Settings) -> Hosts | None:
    """The machines of the inventory file; None when there is none, or when it is at fault: whoever looks at one says so."""
    from assistant.inventory import load, path_of
    from knowledge.errors import GpudiagError

    if path_of(settings) is None:
        return None
    try:
        return load(settings)
    except GpudiagError:
        return None


def hosts_known(settings: Settings, diagnosis: Diagnosis | None = None) -> tuple[str, ...]:
    """Names of the nodes that are known, this one first."""
    return known(settings, diagnosis).hosts


def _of(diagnosis: Diagnosis | None) -> tuple[str, ...]:
    from knowledge.observation import Scope

    return tuple(s.id for s in diagnosis.facts.subjects(Scope.NODE) if s.id) if diagnosis is not None else ()


def _once(here: str, aliases: Sequence[str], names: Iterable[str]) -> tuple[str, ...]:
    """Each node once; this machine under the one name that answers give it."""
    own = [_plain(n) for n in (here, *aliases) if n]
    kept = dict.fromkeys(here if any(_alike(_plain(n), o) for o in own) else n for n in names if n)
    return tuple(kept)


def _remembered(url: str) -> tuple[Sequence[str], Callable[[], Iterable[str]] | None]:
    """Nodes of the history: read at once from a file, from a server only when somebody names a strange node."""
    from assistant.store.location import parse
    from knowledge.errors import ConfigError

    try:
        location = parse(url)
    except ConfigError:  # said by whoever writes the history
        return (), None
    if location is None:
        return (), None
    if location.path is None:
        return (), lambda: _of_server(url)
    return (_of_file(location.path), None) if location.path.exists() else ((), None)


def _of_file(path: Path) -> list[str]:
    """Nodes of a history file. The reader of the history knows more, and takes longer to import than this may."""
    import sqlite3
    from urllib.parse import quote

    for how in ("mode=ro", "mode=ro&immutable=1"):  # the second where the folder cannot be written
        try:
            connection = sqlite3.connect(f"file:{quote(str(path))}?{how}", uri=True, timeout=1.0)
            try:
                return [str(row[0]) for row in connection.execute("SELECT host FROM node ORDER BY host")]
            finally:
                connection.close()
        except (sqlite3.Error, OSError):  # an old, strange or locked file: no names come from it
            continue
    return []


def _of_server(url: str) -> list[str]:
    from assistant.store import _reader
    from assistant.store.location import StoreError

    reader, _ = _reader(url)
    if reader is None:
        return []
    try:
        with reader:
            return reader.hosts()
    except StoreError:
        return []


# --- what a name means --------------------------------------------------------------------


def resolve(name: str, inventory: Inventory) -> Known | Unknown:
    """The node that `name` means: as it is, in other case, short for long, with other digits or dashes.

    A node set is known when all its nodes are. Without a node that fits, and with several that do, Unknown.
    """
    if is_set(name):
        return _resolve_set(clean(name), inventory)
    said = excerpt(name, LONGEST)
    if inventory.is_here(said):
        return Known(inventory.here)
    if said in inventory.called:
        return Known(inventory.called[said])
    found = (
        inventory.index.find(said)
        or _by_another(said, inventory)
        or (inventory.whole_index.find(said) if inventory.more else None)
    )
    return found or Unknown(said, nearest(said, (*inventory.every, *inventory.called)))


def _by_another(said: str, inventory: Inventory) -> Known | Unknown | None:
    """The node that has another name which `said` is nearly."""
    found = Index(inventory.called).find(said) if inventory.called else None
    return Known(inventory.called[found.name]) if isinstance(found, Known) else found


def _resolve_set(said: str, inventory: Inventory) -> Known | Unknown:
    try:
        members = expand(said)
    except ValueError:
        return Unknown(excerpt(said, LONGEST))
    found: Known | Unknown = Known("")
    for member in members:
        found = resolve(member, inventory)
        if isinstance(found, Unknown):
            return found
    return found if len(members) == 1 else Known(excerpt(said, LONGEST))


class Index:
    """Nodes by every way of calling them."""

    def __init__(self, hosts: Iterable[str]) -> None:
        self._exact = frozenset(hosts)
        self._plain: dict[str, list[str]] = defaultdict(list)
        self._short: dict[str, list[str]] = defaultdict(list)
        self._loose: dict[str, list[str]] = defaultdict(list)
        for host in self._exact:
            plain = _plain(host)
            self._plain[plain].append(host)
            self._short[_label(plain)].append(host)
            for key in {_loose(plain), _loose(_label(plain))}:
                self._loose[key].append(host)

    def find(self, said: str) -> Known | Unknown | None:
        """The node that is called so, by the strictest reading that any node fits; Unknown when several fit."""
        if said in self._exact:
            return Known(said)
        wanted = _plain(said)
        label = _label(wanted)
        alike = self._short.get(wanted, []) if label == wanted else self._plain.get(label, [])
        for fits in (self._plain.get(wanted), alike, self._loose.get(_loose(wanted))):
            if fits:
                return Known(fits[0]) if len(fits) == 1 else Unknown(said, tuple(sorted(fits)[:3]))
        return None


def nearest(name: str, hosts: Sequence[str], limit: int = 3) -> tuple[str, ...]:
    """The names that are the fewest edits away, best first; none when all are too far."""
    wanted = _plain(name)
    loose, most = _loose(wanted), min(3, max(1, len(wanted) // 3))
    scored = []
    for host in hosts[:COMPARED]:
        plain = _plain(host)
        edits = min(_edits(wanted, plain, most), _edits(loose, _loose(plain), most))
        if edits <= most:
            scored.append((edits, plain[:1] != wanted[:1], host))
    return tuple(host for _, _, host in sorted(scored)[:limit])


def other(inventory: Inventory, current: str) -> str:
    """The one node that is known beside `current`; empty when there is none, or more than one."""
    found = resolve(current, inventory) if current else Known(inventory.here)
    rest = [h for h in inventory.every if h != found.name]
    return rest[0] if len(rest) == 1 else ""


def _plain(name: str) -> str:
    return normalize("NFKC", name[:LONGEST]).casefold().strip().strip("\"'`").rstrip(".")


def _label(name: str) -> str:
    """The short form of a long name; an address has none."""
    label = name.partition(".")[0]
    return name if label.isdigit() else label


def _alike(a: str, b: str) -> bool:
    """Equal, or one is short for the other: ``gpu-12`` and ``gpu-12.cluster.example``."""
    return a == b or (_label(a) == _label(b) and min(a, b, key=len) == _label(a))


def _loose(name: str) -> str:
    """`name` without padding of numbers and without dashes: ``gpu-003`` and ``GPU3`` are alike, ``gpu-1-2`` and ``gpu-12`` not."""
    return " ".join(w.lstrip("0") or "0" if w.isdigit() else w for w in _PIECE.findall(name))


def _edits(a: str, b: str, most: int) -> int:
    """Optimal string alignment distance (letters changed, added, dropped, swapped); `most` + 1 when it is more.

    The bound keeps it linear in the length.
    """
    if abs(len(a) - len(b)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        older, before, row = before, row, [i] + [most + 1] * len(b)
        for j in range(max(1, i - most), min(len(b), i + most) + 1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != b[j - 1]))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == b[j - 1]:
                row[j] = min(row[j], older[j - 2] + 1)
        if min(row) > most:
            return most + 1
    return row[-1]
