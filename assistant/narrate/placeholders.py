"""Which real word each placeholder stands for: the table that stays here when the rest is sent.

Everything that names or measures something (a number, a code, a GPU, a node, a command, a path, a time, a name that somebody
chose) goes out as ``{gpu_1}`` or ``{f1.value}``, so that a model has nothing to copy wrongly and nothing to learn of the site.
A placeholder belongs to the findings whose texts hold it; `assistant.narrate.fence` lets it stand nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from knowledge.record import dataclass
from knowledge.text import clean

PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9]*(?:[._][a-z0-9]+){1,4})\}")
_SIGNS = r"(?:%|°C|℃|°F)"
_UNITS = r"(?:[munµ]?s|min|h|C|k?W|m?V|A|[kMGT]?Hz|[kKMGTP]i?B(?:/s)?|B/s|[kMGT]b/s|[GM]T/s|[TPG]FLOPS?|rpm|RPM|GPUs?)"
# What a text of ours still holds of the site or of a measurement, the more particular first.
_PATTERNS: tuple[tuple[str, str], ...] = (
    ("xid", r"(?<![A-Za-z])(?:[SX]+ID|[SX]+id) ?\d+"),
    ("time", r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?[\d.,]*(?:Z|[+-]\d\d:?\d\d)?)?|(?<![\d:])\d\d:\d\d:\d\d[\d.,]*Z?"),
    ("cmd", r"`[^`]{1,300}`"),
    ("path", r"(?<![A-Za-z0-9_/.])(?:~|\.{1,2})?/[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]*)*"),
    ("name", r"https?://\S+"),
    ("value", rf"(?<![A-Za-z0-9_.:/-])[-+]?\d[\d.,]*(?<![.,])(?: ?{_SIGNS}| ?{_UNITS}(?![A-Za-z0-9]))?(?![A-Za-z0-9_:/])"),
    ("name", r"(?<![A-Za-z0-9_])[A-Za-z0-9_.:/@-]*\d[A-Za-z0-9_:/@%-]*(?:\.[A-Za-z0-9_]+)*"),
    ("name", r"(?<![A-Za-z0-9_])(?:--?[A-Za-z][\w-]*(?:=\S+)?|[A-Za-z0-9]*_[A-Za-z0-9_]*|[a-z]+(?:-[a-z]+){0,4}\.[a-z_.]*[a-z])"),
    ("name", r"\d+"),
)  # fmt: skip
_OWN = frozenset({"value", "name"})  # of a finding: the same number of another finding is another placeholder


_PLACE = re.compile(r"\{([a-z]+)_\d+\}")


def kind_of(placeholder: str) -> str:
    """What a placeholder names: ``gpu`` of ``{gpu_1}`` and of ``{gpus_1}``; empty of a value of a finding."""
    found = _PLACE.fullmatch(placeholder)
    return found[1].removesuffix("s") if found else ""


@dataclass(frozen=True, slots=True)
class Slot:
    """One placeholder: the text that it stands for, and the findings in whose texts it stands."""

    name: str
    value: str
    owners: frozenset[str]


class Table:
    """Gives out placeholders. The same value of the same kind has the same one."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._values: dict[str, str] = {}
        self._owners: dict[str, set[str]] = {}
        self._kinds: dict[str, int] = {}
        self._literals: dict[str, str] = {}
        self._same_as: dict[str, str] = {}  # another name of the same thing -> the one that it is given out by
        self._pattern: re.Pattern[str] | None = None

    @property
    def slots(self) -> Mapping[str, Slot]:
        """Everything given out so far, by name."""
        return {name: Slot(name, value, frozenset(self._owners[name])) for name, value in self._values.items()}

    def known(self, value: str, kind: str, same_as: str = "") -> None:
        """`value` is a name of the site: it is hidden wherever a text holds it, behind the placeholder of `same_as` if that is given."""
        value = clean(value).strip()
        if same_as and value and value != clean(same_as).strip():
            self._same_as.setdefault(value, clean(same_as).strip())
        if value and value not in self._literals:
            self._literals[value] = kind
            self._pattern = None

    def slot(self, kind: str, value: str, owner: str, own: bool = False) -> str:
        """The placeholder of `value`, in braces. `kind` is a word of small letters."""
        value = clean(value).strip()
        key = (f"{owner}.{kind}" if own or kind in _OWN else kind, value)
        name = self._names.get(key)
        if name is None:
            n = self._kinds[key[0]] = self._kinds.get(key[0], 0) + 1
            name = self._names[key] = f"{key[0]}_{n}"
            self._values[name] = value
        self._owners.setdefault(name, set()).add(owner)
        return f"{{{name}}}"

    def named(self, name: str, value: str, owner: str) -> str:
        """A placeholder of `owner` with a name of its own: ``{f1.count}``."""
        full = f"{owner}.{name}"
        self._values[full] = clean(value)
        self._owners.setdefault(full, set()).add(owner)
        return f"{{{full}}}"

    def hide(self, text: str, owner: str, names: Iterable[str] = (), number: str = "value") -> str:
        """`text` with a placeholder for all that names or measures something. No digit is left outside of them.

        `names` are words of this text that strangers chose: hidden here, whatever they are. `number` is what a measured
        value is called: ``{f1.temperature_1}``.
        """
        text = clean(text).replace("{", "(").replace("}", ")")
        for name in sorted({clean(n) for n in names if clean(n).strip()}, key=lambda n: (-len(n), n)):
            text = text.replace(name.replace("{", "(").replace("}", ")"), self.slot("name", name, owner))
        if self._pattern is None:
            self._pattern = self._compiled()
        return self._pattern.sub(lambda m: self._hidden(m, owner, number), text)

    def _hidden(self, match: re.Match[str], owner: str, number: str) -> str:
        group = match.lastgroup or ""
        if match["given"]:
            return match[0]
        kind = self._literals[match[0]] if group == "known" else _PATTERNS[int(group[1:])][0]
        said = match[0].strip("`")
        return self.slot(number if kind == "value" else kind, self._same_as.get(said, said), owner, own=kind in _OWN)

    def _compiled(self) -> re.Pattern[str]:
        longest = sorted(self._literals, key=lambda v: (-len(v), v))
        edge = "(?<![A-Za-z0-9_])(?P<known>%s)(?![A-Za-z0-9_])"
        known = [edge % "|".join(map(re.escape, longest))] if longest else []
        given = [rf"(?P<given>{PLACEHOLDER.pattern})"]
        return re.compile("|".join([*given, *known, *(f"(?P<p{i}>{p})" for i, (_, p) in enumerate(_PATTERNS))]))
