"""Who may have what looked at from Slack: probes held against the policy. Pure; what the policy does not grant is denied.

A probe is granted by its own name. Two words stand for several: ``check`` for those that every check runs, ``profile`` for those
that read a running process; neither stands for what needs a second person.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from assistant.rights.model import Act, Decision, Lack, Ruling
from assistant.rights.reach import terms
from knowledge.errors import GpudiagError, UnknownNameError
from knowledge.language import Text
from knowledge.observation import Observation, Source, Status, node
from knowledge.record import dataclass
from knowledge.text import excerpt

if TYPE_CHECKING:
    from assistant.rights.policy import Policy
    from assistant.slack.bot import Asker
    from probes.live import ProbeSpec

_ASK = Text("whoever keeps the policy of this bot can grant it", "权限文件的维护者可以授予此权限")
_OPEN = Text("You may turn to the bot here.", "您可以在此使用机器人。")
# What keeps somebody out whatever it is that they want.
_SHUT = frozenset(lack.value for lack in (Lack.PERSON, Lack.MEMBER, Lack.GUEST, Lack.EXTERNAL, Lack.CHANNEL))
_ORDER = tuple(lack.value for lack in Lack)


class DeniedError(GpudiagError):
    """Somebody may not have what they asked for: why, and whom to ask."""

    def __init__(self, why: Text, hint: Text = _ASK) -> None:
        super().__init__(why.en, hint=hint.en)
        self.why, self._hint = why, hint

    @classmethod
    def of(cls, ruling: Ruling, node: str = "") -> DeniedError:
        """For a ruling about something on `node`."""
        del node  # the ruling names it where it matters
        if not ruling.keepers:
            return cls(ruling.why)
        names = ", ".join(ruling.keepers)
        return cls(
            ruling.why,
            Text(
                f"ask {names}: they keep the policy and can grant it", f"请联系 {names}：由其维护权限文件并可授予此权限"
            ),
        )

    def in_(self, language: str) -> str:
        """In a language."""
        hint = self._hint.in_(language)
        return self.why.in_(language) + (f"\n  {hint}" if hint else "")


@dataclass(frozen=True, slots=True)
class Ruled:
    """Probes, by what the policy says of each."""

    allowed: tuple[str, ...] = ()
    second: Mapping[str, Ruling] = field(default_factory=dict)  # once a second person has agreed
    denied: Mapping[str, Ruling] = field(default_factory=dict)


def entry(policy: Policy, asker: Asker) -> Ruling:
    """Whether this person may turn to the bot here at all, be it for an explanation. DENIED or ALLOWED."""
    ruling = policy.decide(asker.person, Act("check", "any"), asker.place.channel)
    return ruling if ruling.rule in _SHUT else Ruling(Decision.ALLOWED, _OPEN, "")


def may_look(policy: Policy, asker: Asker, node: str) -> Ruling:
    """Whether this person may see what was found on a machine before: whoever may have it checked now. DENIED or ALLOWED."""
    return policy.decide(asker.person, Act("check", node), asker.place.channel)


def probe_act(name: str, node: str, options: Mapping[str, str]) -> Act:
    """What running a probe is. It is bound to the options that the probe takes. UnknownNameError when there is no such probe."""
    spec = _spec(name)
    if spec is None:
        from probes.live import probes

        raise UnknownNameError("probe", name, (p.name for p in probes()))
    cost, risk, privileged = terms(name)
    return Act(name, node, cost, risk, privileged, _command(spec, options))


def ruled(
    policy: Policy, asker: Asker, node: str, probes: Sequence[str], options: Mapping[str, str] = {}
) -> Ruled:  # fmt: skip
    """What the policy says of each of `probes` on `node`. A name that is no probe is denied."""
    found = {name: _ruling(policy, asker, node, name, options) for name in probes}
    by = {d: {n: r for n, r in found.items() if r.decision is d} for d in Decision}
    return Ruled(tuple(by[Decision.ALLOWED]), by[Decision.SECOND_PERSON], by[Decision.DENIED])


def denials(denied: Mapping[str, Ruling], host: str) -> tuple[Observation, ...]:
    """What each of these probes would have told first, as not to be had, with the reason: "could not look" is an answer."""
    out = []
    for name, ruling in denied.items():
        spec = _spec(name)
        for fact in spec.main if spec is not None else ():
            why = excerpt(ruling.why.en.removeprefix("Denied: ").rstrip("."))  # in Chinese: `assistant.render.words`
            out.append(Observation(fact, node(host), None, Status.DENIED, Source(name), detail=why))
    return tuple(out)


# --- within -----------------------------------------------------------------------------------------


def _spec(name: str) -> ProbeSpec | None:
    from probes.live import probes

    return next((p for p in probes() if p.name == name), None)


def _command(spec: ProbeSpec, options: Mapping[str, str]) -> tuple[str, ...]:
    """Every word that decides what is run, as people read it."""
    told = sorted((k, v) for k, v in options.items() if k in spec.takes)
    return ("gpudiag", "probe", spec.name, *(f"{k}={v}" for k, v in told))


def _ruling(policy: Policy, asker: Asker, node: str, name: str, options: Mapping[str, str]) -> Ruling:
    person, channel = asker.person, asker.place.channel
    spec = _spec(name)
    if spec is None:
        return policy.decide(person, Act("", node), channel)  # no act at all: denied, whatever is granted
    act = probe_act(name, node, options)
    own = policy.decide(person, act, channel)
    word = "check" if spec.default else "profile" if "pids" in spec.wants else ""
    if own.decision is not Decision.DENIED or not word or not act.alone:
        return own
    other = policy.decide(person, Act(word, node, act.cost, argv=act.argv), channel)
    # Of two denials the one that is nearer to being allowed: it says what is missing.
    return other if other.decision is Decision.ALLOWED or _near(other) > _near(own) else own


def _near(ruling: Ruling) -> int:
    return _ORDER.index(ruling.rule) if ruling.rule in _ORDER else -1
