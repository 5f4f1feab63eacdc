"""The policy file read: TOML, with every fault of it at once, each with its line and the nearest allowed word.

::

    channels = ["C024BE7LH", "direct"]     # where anything may be asked for; "direct": messages to the bot alone

    keepers = ["Ann Lee", "#gpu-admins"]   # who can grant more: named in every denial

    [roles.oncall]
    users = ["U024BE7LH"]                  # ids, which nobody can give themselves
    groups = ["S0614TZR7"]
    see = ["users", "command-lines"]

    [grants.resets]
    roles = ["oncall"]
    run = ["step:gpu-off-bus/*"]
    nodes = ["gpu-*", "@training"]
    cost = "heavy"                         # the highest
    risk = "disruptive"                    # the highest
    privileged = true
    approvers = ["oncall-lead"]            # a second person, who holds one of these roles

    [people]
    alice = ["U024BE7LH", "alice"]         # ids of one person: never a second one
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assistant.inventory.document import Document, text_of
from assistant.inventory.model import Hosts
from assistant.inventory.places import place
from assistant.inventory.words import NAME, NO_NAME, shown
from assistant.rights.model import COSTS, DIRECT, ID, RISKS, Globs, Grant, Role, Sight, globs
from assistant.rights.policy import Policy
from assistant.rights.reach import acts_of, machines_of, no_machine, no_runbook, tests_as_probes
from knowledge.errors import Fault, nearest_hint
from knowledge.text import clean, excerpt

KEYS = ("channels", "roles", "grants", "people", "keepers")
ROLE_KEYS = ("users", "groups", "guests", "external", "see")
GRANT_KEYS = ("roles", "run", "nodes", "cost", "risk", "privileged", "approvers", "second_person")
NEEDED = ("roles", "run", "nodes", "cost")
# Ids as Slack gives them: users U... or, in an Enterprise organisation, W...; user groups S...; channels C..., G... and D...
_USER, _GROUP, _CHANNEL = (
    re.compile(r"[UW][A-Z0-9]{1,30}"),
    re.compile(r"S[A-Z0-9]{1,30}"),
    re.compile(r"[CGD][A-Z0-9]{1,30}"),
)
_NAMES = "names are given by anybody to themselves; the profile has it under Copy member ID"


def read(path: Path, hosts: Hosts) -> Policy:
    """The policy at `path`. InputError when it cannot be read, FaultsError with all that is wrong in it."""
    return parse(text_of(path, "policy"), str(path), hosts)


def parse(text: str, file: str, hosts: Hosts | None = None) -> Policy:
    """The policy that `text` is. FaultsError with all that is wrong in it; `file` is where it says that this stands."""
    reading = _Reading(text, file)
    policy = reading.policy(hosts or Hosts())
    reading.settle()
    return policy


class _Reading(Document):
    """One file: what was found in it, what is wrong with it, and what it names in vain."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self.doubts: dict[Fault, None] = {}

    def doubt(self, key: Sequence[str], message: str, hint: str) -> None:
        """Something that is not wrong, and reaches nothing here."""
        self.doubts.setdefault(Fault(self.file, *place(self.places, key), clean(message), clean(hint)))

    def policy(self, hosts: Hosts) -> Policy:
        """Everything that the file says."""
        self._known((), self.data, KEYS)
        roles = {name: self._role(name, value) for name, value in self._named("roles")}
        grants = [self._grant(name, value, roles, hosts) for name, value in self._named("grants")]
        if grants and "channels" not in self.data:
            self.fault(
                (), "no channel is named, so nobody could ask for anything", 'channels = ["C024BE7LH", "direct"]'
            )
        channels = self._words(("channels",), self.data.get("channels", []))
        for channel in channels:
            if channel != DIRECT and not _CHANNEL.fullmatch(channel):
                self.fault(
                    ("channels",), f"{excerpt(channel, 60)!r} is no id of a channel", f"C..., G..., D..., or {DIRECT}"
                )
        people = tuple(self._person(name, value) for name, value in self._named("people", tables=False))
        keepers = tuple(excerpt(word, 80) for word in self._words(("keepers",), self.data.get("keepers", []))[:10])
        return Policy(
            frozenset(channels), roles, tuple(grants), people, hosts.called, tests_as_probes(), self.file, keepers, tuple(self.doubts)
        )  # fmt: skip

    def _named(self, section: str, *, tables: bool = True) -> list[tuple[str, Any]]:
        """The entries of a section, by their names."""
        found = self.table(self.data.get(section, {}), (section,))
        for name in found:
            if not NAME.fullmatch(name):
                self.fault((section, name), f"{excerpt(name, 60)!r} {NO_NAME}")
        return [(n, self.table(v, (section, n)) if tables else v) for n, v in found.items()]

    def _role(self, name: str, table: Mapping[str, Any]) -> Role:
        key = ("roles", name)
        self._known(key, table, ROLE_KEYS)
        users = self._ids((*key, "users"), table, _USER, "a user (U...)", _NAMES)
        groups = self._ids((*key, "groups"), table, _GROUP, "a user group (S...)", "")
        if not users and not groups and not {"users", "groups"} & table.keys():
            self.fault(key, "nobody belongs to it", "users = [...] or groups = [...]")
        sights = [s.value for s in Sight]
        see = self._words((*key, "see"), table.get("see", []))
        for word in see:
            if word not in sights:
                hint = "nobody is shown secrets" if word.startswith("secret") else nearest_hint(word, sights)
                self.fault((*key, "see"), f"there is nothing called {excerpt(word, 60)!r} to see", hint)
        guests, external = (self._flag((*key, k), table.get(k, False)) for k in ("guests", "external"))
        return Role(name, users, groups, guests, external, frozenset(Sight(w) for w in see if w in sights))

    def _grant(self, name: str, table: Mapping[str, Any], roles: Mapping[str, Role], hosts: Hosts) -> Grant:
        key = ("grants", name)
        self._known(key, table, GRANT_KEYS)
        for needed in NEEDED:
            if needed not in table:
                self.fault(key, f"{needed} is missing: what is not said is not granted")
        risk = self._one((*key, "risk"), table.get("risk", "safe"), RISKS)
        privileged = self._flag((*key, "privileged"), table.get("privileged", False))
        approvers = self._roles((*key, "approvers"), table, roles)
        if (risk != "safe" or privileged) and not approvers and "approvers" not in table:
            said = (
                "a second person has to agree to what is privileged, disruptive or destructive: approvers says who may"
            )
            self.fault(key, said, 'approvers = ["ROLE"]')
        elif (risk != "safe" or privileged) and table.get("approvers") == []:
            self.fault((*key, "approvers"), "nobody could agree: approvers names no role")
        if table.get("second_person", True) is not True:
            self.fault((*key, "second_person"), "the second person cannot be left out; approvers says who it may be")
        line, _ = place(self.places, key)
        return Grant(
            name, self._roles((*key, "roles"), table, roles), self._globs((*key, "run"), table),
            self._nodes((*key, "nodes"), table, hosts), self._one((*key, "cost"), table.get("cost", "free"), COSTS),
            risk, privileged, approvers, f"{self.file}:{line}",
        )  # fmt: skip

    def _person(self, name: str, value: Any) -> frozenset[str]:
        key = ("people", name)
        ids = self._words(key, value)
        for one in ids:
            if not ID.fullmatch(one):
                self.fault(key, f"{excerpt(one, 60)!r} is no id: letters, digits, dots, dashes, underscores and @")
        return frozenset(ids)

    # --- values ---------------------------------------------------------------------------

    def _known(self, key: Sequence[str], table: Mapping[str, Any], allowed: Sequence[str]) -> None:
        for name in table:
            if name not in allowed:
                self.fault((*key, name), f"unknown key {excerpt(name, 60)!r}", nearest_hint(name, allowed))

    def _words(self, key: Sequence[str], value: Any) -> list[str]:
        """`value`, which is to be a word or a list of words; none, and a fault, when it is neither."""
        said = [value] if isinstance(value, str) else value
        if isinstance(said, list) and all(isinstance(w, str) and w for w in said):
            return said
        self.fault(key, f"{key[-1]} is a list of words, not {shown(value)}")
        return []

    def _ids(
        self, key: Sequence[str], table: Mapping[str, Any], pattern: re.Pattern[str], what: str, hint: str
    ) -> frozenset[str]:
        words = self._words(key, table.get(key[-1], []))
        for word in words:
            if not pattern.fullmatch(word):
                self.fault(key, f"{excerpt(word, 60)!r} is no id of {what}", hint)
        return frozenset(w for w in words if pattern.fullmatch(w))

    def _flag(self, key: Sequence[str], value: Any) -> bool:
        if isinstance(value, bool):
            return value
        self.fault(key, f"{key[-1]} is true or false, not {shown(value)}")
        return False

    def _one(self, key: Sequence[str], value: Any, allowed: Sequence[str]) -> str:
        if isinstance(value, str) and value in allowed:
            return value
        self.fault(key, f"{key[-1]} is {shown(value)}", nearest_hint(str(value), allowed))
        return allowed[0]

    def _roles(self, key: Sequence[str], table: Mapping[str, Any], roles: Mapping[str, Role]) -> frozenset[str]:
        words = self._words(key, table.get(key[-1], []))
        for word in words:
            if word not in roles:
                self.fault(key, f"there is no role {excerpt(word, 60)!r}", nearest_hint(word, roles))
        return frozenset(words)

    def _globs(self, key: Sequence[str], table: Mapping[str, Any]) -> Globs:
        words = self._words(key, table.get("run", []))
        for word in words:
            if wrong := acts_of(word):
                self.fault(key, *wrong)
            elif vain := no_runbook(word):
                self.doubt(key, *vain)
        return globs(words, words, within=":")

    def _nodes(self, key: Sequence[str], table: Mapping[str, Any], hosts: Hosts) -> Globs:
        words = self._words(key, table.get("nodes", []))
        names: list[str] = []
        for word in words:
            found, *wrong = machines_of(word, hosts)
            names += found
            if wrong:
                self.fault(key, *wrong)
            elif vain := no_machine(word, found, hosts):
                self.doubt(key, *vain)
        return globs(words, names)
