"""``gpudiag rules``: the rules themselves: what is there, what one says, whether they are sound."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.output import write

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.render.sheet import Sheet
    from rules.loader import RuleSet

NAME = "rules"
HELP = "list, show, check, test and export rules"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``rules list | show ID | lint [FILE...] | test [ID...] | export``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", title="actions")
    every = actions.add_parser("list", help="every rule that is in force")
    every.add_argument("--area", help="only the rules of one area (a folder of the catalogue)")
    one = actions.add_parser("show", help="one rule: its page, its condition, its action")
    one.add_argument("id", help="name of the rule")
    lint = actions.add_parser("lint", help="check rule files, packs and site files; exit code 2 on faults")
    lint.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="files or folders (default: the shipped rules and the configured packs)",
    )
    test = actions.add_parser("test", help="run the rules' own tests; exit code 2 when one fails")
    test.add_argument("ids", nargs="*", metavar="ID", help="only these rules")
    test.add_argument("--mutate", action="store_true", help="flip every clause: a flip that no test notices fails")
    export = actions.add_parser("export", help="all rules in force as one JSON document")
    for child in (every, one, test, export):
        child.add_argument(
            "--rules", action="append", default=[], metavar="PACK", help="lay this pack over the shipped rules"
        )
    for child in (every, one):
        child.add_argument("--site", metavar="FILE", help="apply this site file")


def run(args: argparse.Namespace) -> int:
    """Do the action."""
    if args.action == "lint":
        from assistant.rulecheck import lint

        files = [Path(f) for f in args.files]
        write("".join(f"{line}\n" for line in _expired(files)))
        return lint(files, args.settings.rules.packs)
    if args.action == "test":
        from assistant.rulecheck import test

        return test(ruleset(args, args.settings), args.ids, args.mutate)
    if args.action == "export":
        write(_export(ruleset(args, args.settings)))
        return 0
    from assistant.render.sheet import show
    from assistant.topics import rule
    from knowledge.errors import UnknownNameError

    output = args.settings.output
    chosen = ruleset(args, args.settings)
    try:
        page = (
            _list(chosen, args.area, output.lang) if args.action == "list" else rule.page(chosen, args.id, output.lang)
        )
    except UnknownNameError as error:
        error.hint = error.hint or "gpudiag rules list names them all"
        raise
    write(show(page, output))
    return 0


def ruleset(args: argparse.Namespace, settings: Settings) -> RuleSet:
    """The rules in force: shipped, packs and the site file of flags, else of the configuration."""
    from knowledge.errors import FaultsError
    from rules.loader import load

    packs = [Path(p) for p in args.rules] or settings.rules.packs
    chosen = getattr(args, "site", None)
    site = Path(chosen) if chosen else settings.rules.site_file
    of_packs = "--rules" if args.rules else _origin(settings, "rule_packs")
    of_site = "--site" if chosen else _origin(settings, "site_file")
    here = [_existing(p, of_packs) for p in packs]
    there = _existing(site, of_site) if site else None
    try:
        return load(here, there, _today())
    except FaultsError as error:
        named = [o for o, given in ((of_packs, packs), (of_site, site)) if given]
        error.hint = f"named by {' and '.join(named)}" if named else ""
        raise


def _today() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).date().isoformat()


def _origin(settings: Settings, key: str) -> str:
    """The setting and where it was made: ``site_file in /etc/gpudiag/config.toml``, ``GPUDIAG_SITE_FILE``."""
    found = next((s for s in settings.all if s.option.key == key), None)
    if found is None or found.origin in ("flag", "default"):
        return key
    return found.origin if found.origin == found.option.variable else f"{key} in {found.origin}"


def _existing(path: Path, origin: str) -> Path:
    from knowledge.errors import InputError

    if not path.exists():
        raise InputError(
            f"{path} does not exist (named by {origin})",
            hint="rule packs are rule files or folders of them, a site file is one file",
        )
    return path.resolve()


def _expired(files: list[Path]) -> list[str]:
    """A warning for each entry of the site files among `files` that has expired. Faults are the lint's business."""
    from knowledge import yamlfile
    from knowledge.errors import GpudiagError
    from rules.loader import load

    out = []
    for file in (f for f in files if f.is_file()):
        try:
            notes = load(site=file, today=_today()).notes if isinstance(yamlfile.load(file).data, list) else ()
        except GpudiagError:
            continue
        out += [f"{file}: {note} [warning]" for note in notes if "entry expired on" in note]
    return out


def _list(chosen: RuleSet, area: str | None, lang: str) -> Sheet:
    from assistant.render.labels import label, scope_name
    from assistant.render.sheet import Items, Sheet, Table
    from assistant.topics.rule import plain
    from knowledge.errors import UnknownNameError
    from knowledge.language import Text

    areas = sorted({r.area for r in chosen.rules})
    if area is not None and area not in areas:
        raise UnknownNameError("area", area, areas)
    rules = [r for r in chosen.rules if area in (None, r.area)]
    header = tuple(
        t.in_(lang)
        for t in (Text("rule", "规则"), Text("severity", "级别"), Text("about", "对象"), Text("title", "标题"))
    )
    rows = tuple((r.id, label(str(r.severity), lang), scope_name(r.scope, lang), r.title.in_(lang)) for r in rules)
    title = Text(f"{len(rules)} rules ({chosen.fingerprint})", f"{len(rules)} 条规则（{chosen.fingerprint}）").in_(lang)
    data = {"ruleset": chosen.fingerprint, "rules": [plain(r, lang) for r in rules], "notes": list(chosen.notes)}
    return Sheet(title, (Table(header, rows), Items(chosen.notes)), data)


def _export(chosen: RuleSet) -> str:
    """Every rule as its file has it (site changes are listed, not merged)."""
    import json

    from assistant.rulecheck import file_of
    from knowledge import yamlfile

    rules = [{"file": r.file, **yamlfile.load(file_of(r)).data} for r in chosen.rules]
    body = {"schema": "gpudiag/rules/1", "ruleset": chosen.fingerprint, "notes": list(chosen.notes), "rules": rules}
    return json.dumps(body, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
