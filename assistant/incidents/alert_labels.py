"""What the labels of an alert mean: how bad it is, which node, which GPU, and whether it is one of gpudiag's own rules.

Labels and annotations are written by whoever may write a rule or a metric: nothing of them is believed that is not
looked up, and nothing is longer than a line. Pure, but for what `Knows` is told to look names up with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from knowledge.identity import is_pci
from knowledge.language import NO_TEXT, Text
from knowledge.observation import Scope, Subject, gpu, node
from knowledge.record import dataclass
from knowledge.text import clean, excerpt
from probes.alert_labels import LINE, NAME, gpu_of, hosts_of, severity_of, summary_of

LABELS, VALUE = 30, 120  # labels of an alert that are kept, characters of each value
_RUNBOOK = ("gpudiag_runbook", "runbook")


class Card(NamedTuple):
    """What an alert may know of a rule of gpudiag."""

    title: Text
    severity: str
    runbook: str = ""
    by_code: bool = False  # one finding for each code


@dataclass(frozen=True, slots=True)
class Knows:
    """What names are looked up with."""

    node: Callable[[str], str] = lambda _: ""  # the name that a node is known by; empty when none is called so
    rule: Callable[[str], Card | None] = lambda _: None
    runbook: Callable[[str], bool] = lambda _: False  # whether there is one of that name


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the labels of one alert say."""

    name: str
    severity: str  # empty when nothing tells
    host: str  # empty when no label names a node
    about: Subject | None  # the GPU, or what the rule says it is about
    summary: str
    rule: str = ""
    card: Card | None = None
    xid: int | None = None
    runbook: str = ""

    @property
    def key(self) -> str:
        """The id that a check gives the finding of the same rule about the same thing; empty where that cannot be told."""
        if self.card is None or self.about is None or not self.host or (self.card.by_code and self.xid is None):
            return ""
        name = f"{self.rule}:{self.xid}" if self.card.by_code else self.rule
        return f"{name}@{self.host}" if self.about.scope is Scope.NODE else f"{name}@{self.host}/{self.about.id}"


def meaning(labels: Mapping[str, str], annotations: Mapping[str, str], knows: Knows) -> Meaning:
    """What the labels say. They win over annotations, which are words for people."""
    host = node_of(labels, knows)
    rule = labels.get("rule", "")[:NAME]
    card = knows.rule(rule) if rule else None
    own = card is not None
    code = labels.get("xid", "")
    xid = int(code) if code.isascii() and code.isdecimal() and len(code) < 6 else None
    named = [t[n] for t in (labels, annotations) for n in _RUNBOOK if n in t and knows.runbook(t[n][:NAME])]
    return Meaning(
        name=excerpt(labels.get("alertname", "") or rule, NAME),
        severity=severity_of(labels) or (card.severity if card is not None else ""),
        host=host,
        about=(_told(labels.get("subject", ""), host) if own else None) or gpu_of(labels, host),
        summary=summary_of(annotations),
        rule=rule if own else "",
        card=card,
        xid=xid,
        runbook=card.runbook if card is not None and card.runbook else next(iter(named), ""),
    )


def kept(words: Mapping[str, str]) -> dict[str, str]:
    """Labels or annotations, safe to keep and to show: cleaned, cut, and not more than `LABELS` of them."""
    return {excerpt(n[:NAME], 60): excerpt(words[n][: 4 * LINE], VALUE) for n in sorted(words)[:LABELS]}


# --- the node -----------------------------------------------------------------------------


def node_of(labels: Mapping[str, str], knows: Knows) -> str:
    """The node that an alert is about: the first label of a node that is known, else the first that names one."""
    said = hosts_of(labels)
    return next((known for h in said if (known := knows.node(h))), next(iter(said), ""))


def _told(text: str, host: str) -> Subject | None:
    """The thing that gpudiag itself names: ``gpu 0000:3b:00.0``, ``node gpu-12``. None for what needs more than one name."""
    scope, _, name = text.strip().partition(" ")
    if text == "this node" or scope == Scope.NODE:
        return node(host)
    if scope == Scope.GPU and is_pci(name):
        return gpu(name, host)
    return None


# --- words --------------------------------------------------------------------------------


def title_of(m: Meaning) -> Text:
    """One alert in one clause: by the rule where it is known, else by its name."""
    from assistant.render.labels import headline, subject_name

    where = m.about if m.about is not None else node(m.host) if m.host else None
    said = rule_title(m)
    if said and where is not None:
        return Text(*(excerpt(headline(said, (where,), lang, named=bool(m.host)), LINE) for lang in ("en", "zh")))
    if said:
        return said
    if where is None:
        return Text(m.name, m.name) if m.name else NO_TEXT
    en, zh = (clean(subject_name(where, lang)) for lang in ("en", "zh"))
    if where.scope is not Scope.NODE and m.host:
        en, zh = f"{m.host} {en}", f"{m.host} {zh}"
    return Text(f"{m.name} on {en}", f"{zh}：{m.name}")


def rule_title(m: Meaning) -> Text:
    """The title of the rule; none where a word in it is not known."""
    if m.card is None:
        return NO_TEXT
    title = m.card.title
    if m.xid is not None:
        title = Text(*(t.replace("{code}", str(m.xid)) for t in (title.en, title.zh)))
    return NO_TEXT if "{" in title.en + title.zh else title
