"""Which nodes there are to show, and what is known of each: asked again and again, and cheap when nothing has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assistant.nodes import Look, Node, listed
from assistant.nodes.bundles import Told, found_in, looks_of, stamp
from assistant.nodes.child import reading
from assistant.nodes.past import mark, read
from knowledge.errors import UsageError
from knowledge.language import NO_TEXT, Text

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.session.inventory import Inventory


class Wanted(NamedTuple):
    """What somebody wants to see: a set of nodes, or a folder of recordings; neither: every node that is known."""

    names: tuple[str, ...] = ()
    folder: str = ""


def wanted(text: str) -> Wanted:
    """``gpu[001-064]``, or a folder. UsageError for what is neither."""
    from assistant.session.nodeset import expand

    said = text.strip()
    if not said:
        return Wanted()
    path = Path(said).expanduser()
    if path.is_dir():
        return Wanted(folder=str(path))
    if "/" in said:
        raise UsageError(
            f"{said}: there is no such folder", hint="a folder of bundles, or a set such as gpu[001-064]",
            zh=f"没有此文件夹：{said}", hint_zh="录制文件夹，或节点集（如 gpu[001-064]）",
        )  # fmt: skip
    try:
        return Wanted(expand(said))
    except ValueError as error:
        raise UsageError(str(error), hint="a set such as gpu[001-064,070], or a folder of bundles") from None


class Gathered(NamedTuple):
    """What is known at one moment."""

    names: tuple[str, ...] = ()
    looks: Mapping[str, Sequence[Look]] = {}
    troubles: Mapping[str, Text] = {}
    trouble: Text = NO_TEXT  # why nothing is known from the history
    here: str = ""  # this machine, where it is among them
    left: int = 0  # recordings that are still to be read
    every: bool = False  # nothing was asked for by name: whatever else is known belongs to it

    def nodes(
        self, live: Look | None = None, others: Mapping[str, Look] = {}, opened: Mapping[str, Sequence[Look]] = {}
    ) -> list[Node]:
        """One node each; `live`: what this machine has just told; `others`: what others of them have; `opened`: recordings
        that were opened beside them. Of a node that is not among those that were asked for they are left out."""
        looks = {host: list(seen) for host, seen in self.looks.items()}
        for host, recorded in opened.items():
            if self.every or host in self.names:
                looks[host] = [*looks.get(host, ()), *recorded]
        for host, look in (*((self.here, look) for look in (live,) if look), *others.items()):
            if host and host in self.names:
                looks[host] = [*looks.get(host, ()), look]
        return listed(self.names, looks, here=self.here, troubles=self.troubles)


class Gatherer:
    """Reads, and remembers what it has read. For one thread."""

    def __init__(
        self, settings: Settings, inventory: Callable[[], Inventory], what: Wanted, *,
        site: str | None = None, packs: Sequence[str] = (), history: bool = True,
    ) -> None:  # fmt: skip
        self._settings, self._inventory, self.what = settings, inventory, what
        self._site, self._packs, self._history = site, packs, history
        self._told: dict[str, tuple[tuple[int, int], Told]] = {}
        self._mark: object = None

    def changed(self) -> bool:
        """Whether there may be something new since the last round. A server's history always may have."""
        now = self._stamp()
        return now == () or now != self._mark

    def rounds(self, check: Callable[[], None]) -> Iterator[Gathered]:
        """What is known, growing; the last one is all. UsageError when the folder cannot be listed."""
        self._mark = self._stamp()
        if self.what.folder:
            yield from self._recordings(check)
        else:
            yield self._past()

    def _stamp(self) -> object:
        if self.what.folder:
            try:
                return tuple((path, stamp(path)) for path in found_in(self.what.folder))
            except OSError:
                return ("gone",)
        return mark(self._settings.history.url)

    def _past(self) -> Gathered:
        inventory = self._inventory()
        past = read(self._settings.history.url) if self._history else None
        looks = past.looks if past is not None else {}
        if self.what.names:
            from assistant.session.inventory import Known, resolve

            found = [(name, resolve(name, inventory)) for name in self.what.names]
            names = tuple(dict.fromkeys(k.name if isinstance(k, Known) else name for name, k in found))
            looks = {name: looks[name] for name in names if name in looks}
        else:
            names = inventory.every
        here = inventory.here if inventory.here in names else ""
        return Gathered(names, looks, {}, past.trouble if past is not None else NO_TEXT, here,
                        every=not self.what.names)  # fmt: skip

    def _recordings(self, check: Callable[[], None]) -> Iterator[Gathered]:
        try:
            paths = found_in(self.what.folder)
        except OSError as error:
            where, why = self.what.folder, error.strerror
            raise UsageError(f"{where} cannot be listed: {why}", zh=f"无法列出 {where}：{why}") from None
        stamps = {path: stamp(path) for path in paths}
        self._told = {p: kept for p, kept in self._told.items() if stamps.get(p) == kept[0]}
        new = [path for path in paths if path not in self._told]
        yield self._of_recordings(len(new))
        for n, told in enumerate(reading(new, site=self._site, packs=self._packs, check=check), 1):
            self._told[told.path] = (stamps[told.path], told)
            yield self._of_recordings(len(new) - n)

    def _of_recordings(self, left: int) -> Gathered:
        looks, troubles = looks_of(told for _, told in self._told.values())
        return Gathered((), looks, troubles, left=left)
