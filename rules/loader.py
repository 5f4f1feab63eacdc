"""Rule files to rules: strict reading, all faults at once, site changes, a compiled cache.

A rule is one file, ``rules/catalog/<area>/<id>.yaml``. Packs are laid over each other
(base, then vendor, then site); a site file changes parameters and severities, disables or
suppresses, each entry with a reason, an owner and a date on which it ends.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knowledge import compiled
from knowledge.errors import Fault, FaultsError, alike, nearest_hint
from knowledge.facts import Type, Vocabulary, vocabulary
from knowledge.language import Text
from knowledge.observation import Scope
from knowledge.record import dataclass
from knowledge.units import parse_duration
from rules.builder import Builder
from rules.condition import All, Condition, FactLeaf, Leaf, Take, facts_of, leaves, without
from rules.condition import Path as DataPath
from rules.model import (
    ActionSpec,
    Bucket,
    Cure,
    Effect,
    Explains,
    ImpactSpec,
    Param,
    Risk,
    Rule,
    Rules,
    RuleStatus,
    RuleTest,
    Severity,
    Usable,
    facts_named,
)
from rules.reading import UNRESOLVED

if TYPE_CHECKING:
    from knowledge.yamlfile import Document

CATALOG = Path(__file__).parent / "catalog"
Report = Any


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules that are in force, and what a site took out or changed, with the reasons."""

    rules: Sequence[Rule]
    fingerprint: str
    notes: tuple[str, ...] = ()
    suppressed: Mapping[str, tuple[str, ...]] | None = None  # rule id -> hosts

    def __getitem__(self, rule_id: str) -> Rule:
        from knowledge.errors import UnknownNameError

        for rule in self.rules:
            if rule.id == rule_id:
                return rule
        raise UnknownNameError("rule", rule_id, (r.id for r in self.rules), kind_zh="规则")


def load(packs: Sequence[Path] = (), site: Path | None = None, today: str = "") -> RuleSet:
    """The shipped rules with `packs` over them and `site` applied.

    `today` (ISO date) decides which site entries have expired; without it none has.
    Raises FaultsError with every fault of every file.
    """
    if not packs and site is None:
        return _shipped_rules()
    plain = shipped() | {k: v for pack in packs for k, v in read_pack(pack).items()}
    vocab = vocabulary()
    faults: list[Fault] = []
    entries, expired = _site_entries(site, plain, today) if site else ([], [])
    overrides: dict[str, dict[str, Any]] = {}
    for entry in entries:
        overrides.setdefault(entry["rule"], {}).update(entry.get("params", {}))
    rules = []
    for rule_id, (file, data) in plain.items():

        def report(path: DataPath, message: str, hint: str, file: str = file) -> None:
            faults.append(Fault(file, 1, 1, f"{'.'.join(map(str, path))}: {message}", hint))

        rule = build(data, file, vocab, report, overrides.get(rule_id, {}))
        if rule is not None:
            rules.append(rule)
    if faults:
        raise FaultsError(faults)
    ruleset = _apply_site(rules, entries, compiled_hash(plain, entries))
    return replace(ruleset, notes=(*ruleset.notes, *map(expiry, expired)))


@cache
def _shipped_rules() -> RuleSet:
    """The shipped rules as they are. They were checked when their compiled copy was made: no fault is left."""
    ready = _compiled()
    vocab = vocabulary()

    def built(rule_id: str) -> Rule:
        file, text = ready[_named(rule_id)]

        def report(path: DataPath, message: str, hint: str) -> None:
            raise FaultsError([Fault(file, 1, 1, f"{'.'.join(map(str, path))}: {message}", hint)])

        rule = build(_unfolded(text), file, vocab, report, {})
        assert rule is not None  # `report` was not called
        return rule

    rules = Rules(ready["asks"], built, ready["asks"], ready["back"], ready["cards"])
    return RuleSet(rules, ready["fingerprint"], suppressed={})


def expiry(entry: Mapping[str, Any]) -> str:
    """What is said of a site entry whose day has passed."""
    return f"rule {entry['rule']}: entry expired on {entry['expires']} and no longer counts"


def compiled_hash(plain: Mapping[str, Any], entries: Sequence[Mapping[str, Any]] = ()) -> str:
    """A short hash of everything that the conclusions depend on."""
    import hashlib

    text = json.dumps([sorted((k, v[1]) for k, v in plain.items()), list(entries)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def shipped() -> dict[str, tuple[str, dict[str, Any]]]:
    """The plain data of all shipped rules by id, from the compiled copy when there is one."""
    ready = _compiled()
    return {k: (file, _unfolded(text)) for k in ready["asks"] for file, text in [ready[_named(k)]]}


def _named(rule_id: str) -> str:
    """Under which name the text of a rule is kept."""
    return f"rule {rule_id}"


_QUOTE = "\x7f"  # stands for the quote: one that stands in a rule itself is written as an escape


def _folded(data: Mapping[str, Any]) -> str:
    """A rule as one text: only rules that may hold are read whole, and a text without quotes is read in a tenth of the time."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace(_QUOTE, "\\u007f").replace('"', _QUOTE)


def _unfolded(text: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(text.replace(_QUOTE, '"'))
    return data


@cache
def _compiled() -> Mapping[str, Any]:
    """What `compile_catalog` made, of the wheel or kept since the last change in this checkout."""
    return compiled.in_parts("rules", _files, compile_catalog)


def _files() -> list[Path | str | bytes]:
    here = Path(__file__).parent
    ours = [here / f"{name}.py" for name in ("schema", "condition", "builder", "index", "loader")]
    return [compiled.stamp(CATALOG, ".yaml"), *ours, *compiled.shard_files("facts")]


def compile_catalog() -> dict[str, Any]:
    """The shipped rules, checked, as plain data; and what is asked of all of them at every start, so that each
    has to be built only when it may hold. FaultsError with every fault."""
    from rules.index import plain_card

    plain, vocab = read_pack(CATALOG), vocabulary()
    asks, back, cards = {}, [], {}
    for rule_id, (file, data) in plain.items():
        rule = build(data, file, vocab, lambda *_: None, {})
        assert rule is not None  # `read_pack` checked it
        asks[rule_id] = sorted(facts_of(rule.when))
        cards[rule_id] = plain_card(rule)
        if any(isinstance(x, FactLeaf) and x.take is not Take.LAST for x in _leaves(rule)):
            back.append(rule_id)
    folded = {_named(rule_id): (file, _folded(data)) for rule_id, (file, data) in plain.items()}
    return {"fingerprint": compiled_hash(plain), "asks": asks, "back": back, "cards": cards, **folded}


def _leaves(rule: Rule) -> Iterator[Leaf]:
    for condition in (rule.when, *rule.confirms, *rule.excludes):
        yield from leaves(condition)


def rule_files(folder: Path) -> list[Path]:
    """Every rule file of a pack."""
    found = map(Path, compiled.files_under(folder, ".yaml"))
    return [p for p in found if not p.name.startswith("_")]


def read_pack(folder: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """Read and check a pack (a folder, or one file): id -> (file, plain data)."""
    files = rule_files(folder) if folder.is_dir() else [folder]
    out: dict[str, tuple[str, dict[str, Any]]] = {}
    faults: list[Fault] = []
    for path in files:
        document, rule = read_file(path)
        faults.extend(document.faults)
        if rule is None or document.faults:
            continue
        if rule.id in out:
            message = f"rule {rule.id!r} is already defined in {out[rule.id][0]}"
            faults.append(Fault(document.file, *document.at(("id",)), message))
        out[rule.id] = (document.file, document.data)
    if faults:
        raise FaultsError(faults)
    return out


def read_file(path: Path) -> tuple[Document, Rule | None]:
    """One rule file: its document with all faults, and the rule when there are none."""
    document, rule = read_partly(path)
    return document, None if document.faults else rule


def read_partly(path: Path) -> tuple[Document, Rule | None]:
    """One rule file: its document with all faults, and the rule as far as it can be read.

    What could not be read is left out of the rule; `document.faulty` says what that is.
    """
    from knowledge import yamlfile

    root = Path(__file__).parent.parent
    name = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    document = yamlfile.load(path, name)
    if document.data is None and not document.faults:
        document.fault((), "the file is empty")
    return document, check(document, path.stem)


def check(document: Document, stem: str = "") -> Rule | None:
    """Shape, names, types and places of one rule document: the rule, as far as it can be read."""
    from knowledge.yamlfile import unsure
    from rules.mend import mended
    from rules.schema import RuleFile

    data = document.data
    if not isinstance(data, dict):
        if not document.faults:
            document.fault((), "a rule file is a mapping")
        return None
    compiled.check(document, (), data, RuleFile)
    shapeless = frozenset(document.faulty)
    if stem and isinstance(data.get("id"), str) and data["id"] != stem:
        document.fault(("id",), f"id {data['id']!r} is not the file name {stem!r}")
    plain = mended(data, stem) if shapeless else data

    def report(path: DataPath, message: str, hint: str) -> None:
        if not unsure(path, shapeless):  # what stands in for something that is wrong
            document.fault(path, message, hint)

    _unused_params(document, data)
    if plain is None:
        return None
    return _assemble(plain, document.file, vocabulary(), report, {}, shapeless)[0]


def _unused_params(document: Document, data: Mapping[str, Any]) -> None:
    """A parameter that no condition uses: of a misspelt key either, or under a misspelt name."""
    from rules.schema import RuleFile

    declared = data.get("params")
    beside = set(RuleFile.model_fields) - {"when", "confirms", "excludes"}
    used = {word for key, value in data.items() if key not in beside for word in _words(value)}
    names = declared if isinstance(declared, dict) else {}
    lost = [word[1:] for word in used if word.startswith("$") and word[1:] not in names]
    for name in names:
        if f"${name}" not in used and not any(alike(word, name) for word in lost):
            document.fault(("params", name), f"parameter {name!r} is never used")


def _words(plain: Any) -> Iterator[str]:
    """Every string of a condition, wherever it stands."""
    if isinstance(plain, dict):
        plain = list(plain.values())
    if isinstance(plain, list):
        for item in plain:
            yield from _words(item)
    elif isinstance(plain, str):
        yield plain


def _param(name: str, v: Mapping[str, Any]) -> Param:
    return Param(name, v["type"], v["default"], v.get("min"), v.get("max"), v.get("unit", ""))


def _conditions(data: Mapping[str, Any]) -> Iterator[tuple[DataPath, Any]]:
    yield ("when",), data["when"]
    for key in ("confirms", "excludes"):
        yield from (((key, i), item) for i, item in enumerate(data.get(key, ())))


def build(
    data: Mapping[str, Any],
    file: str,
    vocab: Vocabulary,
    report: Report,
    override: Mapping[str, Any],
) -> Rule | None:
    """The rule of checked plain data, with the site's parameter values; None after a fault."""
    rule, sound = _assemble(data, file, vocab, report, override, frozenset())
    return rule if sound else None


def _assemble(
    data: Mapping[str, Any],
    file: str,
    vocab: Vocabulary,
    report: Report,
    override: Mapping[str, Any],
    shapeless: Collection[DataPath],
) -> tuple[Rule, bool]:
    """The rule without the parts that have a fault, and whether it has them all."""
    broken: set[DataPath] = set()

    def told(path: DataPath, message: str, hint: str) -> None:
        broken.add(path)
        report(path, message, hint)

    params = tuple(_param(k, v) for k, v in data.get("params", {}).items())
    builder = Builder(vocab, _values(data, params, told, override, shapeless), told, set(), broken, partly=True)
    parts = {path: builder.build(c, path) for path, c in _conditions(data)}
    _shown_facts(data, vocab, told)
    if broken:
        parts = {path: c and without(c, broken) for path, c in parts.items()}
    path = Path(file)
    rule = Rule(
        id=data["id"], revision=data["revision"], title=Text.of(data["title"]), status=RuleStatus(data["status"]),
        severity=Severity(data["severity"]), scope=Scope(data["scope"]), when=parts["when",] or All((), ("when",)),
        why=Text.of(data["why"]), file=file, area=path.parent.name, symptoms=tuple(data.get("symptoms", ())),
        applies=data.get("applies", {}), params=params, confirms=_present(parts, "confirms"),
        excludes=_present(parts, "excludes"),
        explains=tuple(_explains(e) for e in data.get("explains", ())), split_by=data.get("split_by", ""),
        impact=_impact(data.get("impact")), shows=tuple(data.get("shows", ())),
        names=Text.of(data.get("names")), leads=Text.of(data.get("leads")),
        severity_from=data.get("severity_from", ""), xid=data.get("xid"), action=_action(data["action"]),
        cured_by=None if data.get("cured_by") is None else tuple(Cure(c) for c in data["cured_by"]),
        uncured=Text.of(data.get("uncured")),
        leaves_open=data.get("leaves_open", False), consequence=data.get("consequence", False),
        false_positives=Text.of(data.get("false_positives")), references=tuple(data.get("references", ())),
        tests=tuple(_test(t) for t in data.get("tests", ())),
    )  # fmt: skip
    return rule, not broken


def _values(
    data: Mapping[str, Any],
    params: Sequence[Param],
    report: Report,
    override: Mapping[str, Any],
    shapeless: Collection[DataPath],
) -> dict[str, Any]:
    """What the parameters stand for. One with a fault stands for nothing, and is told once, not where it is used."""
    values = {}
    for p in params:
        problem = p.problem(p.default)
        if problem:
            report(("params", p.name, "default"), problem, "")
        values[p.name] = override.get(p.name, UNRESOLVED if problem else p.default)
    if shapeless:
        from knowledge.yamlfile import unsure

        words = {word[1:] for _, c in _conditions(data) for word in _words(c) if word.startswith("$")}
        values |= {name: UNRESOLVED for name in words if unsure(("params", name), shapeless)}
    return values


# units of the facts of an `impact` and of an action
_UNITS = {"share": "percent", "window": "s", "hours": "h", "impairs": "percent"}


def _shown_facts(data: Mapping[str, Any], vocab: Vocabulary, report: Report) -> None:
    """The facts of `names`, `leads`, `impact`, `shows` and of what an action `impairs` exist, with the right unit where one is due."""
    named: list[tuple[DataPath, str]] = [(("shows", i), name) for i, name in enumerate(data.get("shows", ()))]
    for key in ("names", "leads"):
        for language, text in (data.get(key) or {}).items():
            named += [((key, language), name) for name in facts_named(text)]
    impact = data.get("impact") or {}
    named += [(("impact", key), impact[key]) for key in _UNITS if impact.get(key)]
    if impairs := (data.get("action") or {}).get("impairs"):
        named.append((("action", "impairs"), impairs))
    for path, name in named:
        spec = vocab.get(name)
        unit = _UNITS.get(str(path[-1]), "")
        if spec is None:
            near = vocab.nearest(name)
            report(path, f"unknown fact {name!r}", f"did you mean {near!r}?" if near else "")
        elif unit and (spec.type not in (Type.INT, Type.FLOAT) or spec.unit != unit):
            report(path, f"{name} is no number in {unit}", "")


def _impact(plain: Mapping[str, Any] | None) -> ImpactSpec | None:
    if not plain:
        return None
    return ImpactSpec(plain["share"], plain.get("window", ""), Text.of(plain["of"]), plain.get("hours", ""))


def _present(parts: Mapping[DataPath, Condition | None], key: str) -> tuple[Condition, ...]:
    return tuple(c for path, c in parts.items() if path[0] == key and c is not None)


def _explains(e: Mapping[str, Any]) -> Explains:
    via = tuple(Scope(s) for s in e.get("via", ()))
    within = parse_duration(e.get("within", "3m"))
    return Explains(
        e.get("rule", ""), e.get("by", ""), e.get("on", "self"), via, tuple(e.get("same", ())), within,
        Effect(e["effect"]) if e.get("effect") else None, Text.of(e.get("because")), parse_duration(e.get("late", "2s")),
    )  # fmt: skip


def _action(a: Mapping[str, Any]) -> ActionSpec:
    return ActionSpec(
        bucket=Bucket(a["bucket"]) if a.get("bucket") else None,
        resolve=tuple(a.get("resolve", ())),
        text=Text.of(a.get("text")),
        command=a.get("command", ""),
        risk=Risk(a["risk"]) if a.get("risk") else None,
        runbook=a.get("runbook", ""),
        then=tuple(Text.of(t) for t in a.get("then", ())),
        confirm=Text.of(a.get("confirm")),
        again=Text.of(a.get("again")),
        again_bucket=Bucket(a["again_bucket"]) if a.get("again_bucket") else None,
        usable=Usable(a["usable"]) if a.get("usable") else None,
        impairs=a.get("impairs", ""),
        until=Text.of(a.get("until")),
    )


def _test(t: Mapping[str, Any]) -> RuleTest:
    return RuleTest(t["name"], t["given"], t["expect"], t.get("grade", ""), t.get("bucket", ""), t.get("count"))


# --- site files ---------------------------------------------------------------------------


def _site_entries(
    site: Path, plain: Mapping[str, tuple[str, Mapping[str, Any]]], today: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The entries in force, and those that have expired. FaultsError with everything that is wrong."""
    from knowledge import yamlfile
    from rules.schema import SiteEntry

    document = yamlfile.load(site)
    if document.data is not None and not isinstance(document.data, list):
        document.fault((), "a site file holds a list of entries")
        document.data = None
    kept: list[dict[str, Any]] = []
    expired: list[dict[str, Any]] = []
    for i, entry in enumerate(document.data or []):
        if compiled.check(document, (i,), entry, SiteEntry) is None:
            continue
        if not _is_date(entry["expires"]):
            document.fault((i, "expires"), f"there is no day {entry['expires']!r}", "write 2027-01-31")
            continue
        known = plain.get(entry["rule"])
        if known is None:
            document.fault((i, "rule"), f"no rule {entry['rule']!r}", nearest_hint(entry["rule"], plain))
            continue
        _check_params(document, i, entry, known[1])
        (kept if not today or entry["expires"] >= today else expired).append(entry)
    document.raise_faults()
    return kept, expired


def _is_date(text: str) -> bool:
    from datetime import date

    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


def _check_params(document: Document, i: int, entry: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    declared = data.get("params", {})
    for name, value in entry.get("params", {}).items():
        spec = declared.get(name)
        if spec is None:
            document.fault(
                (i, "params", name), f"rule {entry['rule']} has no parameter {name!r}", nearest_hint(name, declared)
            )
        elif problem := _param(name, spec).problem(value):
            document.fault((i, "params", name), problem)


def _apply_site(rules: Sequence[Rule], entries: Sequence[Mapping[str, Any]], fingerprint: str) -> RuleSet:
    changed = {r.id: r for r in rules}
    notes: list[str] = []
    suppressed: dict[str, tuple[str, ...]] = {}
    for e in entries:
        who = f"{e['reason']} ({e['owner']}, until {e['expires']})"
        if e.get("disable"):
            changed.pop(e["rule"], None)
            notes.append(f"rule {e['rule']} is switched off: {who}")
            continue
        rule = changed.get(e["rule"])
        if rule is None:
            continue  # another entry switched it off
        if e.get("severity"):
            changed[rule.id] = replace(rule, severity=Severity(e["severity"]))
            notes.append(f"rule {rule.id} has severity {e['severity']}: {who}")
        if e.get("params"):
            notes.append(f"rule {rule.id} uses {', '.join(f'{k}={v}' for k, v in e['params'].items())}: {who}")
        if e.get("suppress_hosts"):
            suppressed[rule.id] = tuple(sorted({*suppressed.get(rule.id, ()), *e["suppress_hosts"]}))
            notes.append(f"rule {rule.id} is suppressed on {', '.join(e['suppress_hosts'])}: {who}")
    return RuleSet(tuple(sorted(changed.values(), key=lambda r: r.id)), fingerprint, tuple(notes), suppressed)
