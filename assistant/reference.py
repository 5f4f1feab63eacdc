"""The generated reference, ``docs/reference/*.md``, and the exchange on the first screen of ``README.md``.

    python -m assistant.reference --write      write the pages again
    python -m assistant.reference --check      exit 2 and name the pages that are out of date

Everything here is read from the program itself, so a page can only be stale, never wrong;
`make check` and a test notice the stale ones.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from assistant.render.markdown import code
from knowledge.errors import Fault, FaultsError
from knowledge.text import opened

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "reference"
NOTE = "<!-- Written by `make docs` from the program itself. Do not edit. -->"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages, or say which are stale."""
    parser = argparse.ArgumentParser(
        prog="python -m assistant.reference", description="docs/reference from the program"
    )
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--write", action="store_true")
    group.add_argument("--check", action="store_true")
    args = parser.parse_args(argv)
    pages = build()
    if args.write:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (FOLDER / name).write_text(text, encoding="utf-8")
        (ROOT / "README.md").write_text(readme(), encoding="utf-8")
        for old in set(FOLDER.glob("*.md")) - {FOLDER / name for name in pages}:
            old.unlink()
        return 0
    said = stale(pages)
    print(said or f"{len(pages)} pages, 0 out of date")
    return 2 if said else 0


def stale(pages: Mapping[str, str], root: Path = ROOT) -> str:
    """Every page that is out of date, with the line, and what to do about all of them at once; empty when none is."""
    found = [*out_of_date(pages, root / "docs" / "reference"), *_stale_readme(root)]
    return "\n".join([*map(str, found), f"{len(found)} out of date: run make docs"]) if found else ""


def build() -> dict[str, str]:
    """Every page by file name."""
    makers: Mapping[str, Callable[[], Iterable[str]]] = {
        "commands.md": commands,
        "configuration.md": configuration,
        "exit-codes.md": exit_codes,
        "facts.md": facts,
        "inputs.md": inputs,
        "probes.md": probes,
        "rules.md": rules,
        "runbooks.md": runbooks,
    }
    return {name: "\n".join([NOTE, "", *make()]).rstrip() + "\n" for name, make in makers.items()}


def out_of_date(pages: Mapping[str, str], folder: Path = FOLDER) -> list[Fault]:
    """Pages that differ from what is on disk, with the first line that does."""
    out = []
    for name, text in pages.items():
        path = folder / name
        shown = f"docs/reference/{name}"
        have = path.read_text(encoding="utf-8").split("\n") if path.is_file() else []
        want = text.split("\n")
        if have != want:
            line = next(
                (n for n, (a, b) in enumerate(zip(have, want, strict=False), 1) if a != b),
                min(len(have), len(want)) + 1,
            )
            out.append(Fault(shown, line, 1, "out of date"))
    out += [
        Fault(f"docs/reference/{path.name}", 1, 1, "belongs to nothing")
        for path in sorted(folder.glob("*.md"))
        if path.name not in pages
    ]
    return out


# --- README -------------------------------------------------------------------------------


@cache
def transcript() -> str:
    """A real exchange: the first demo's command and the answer, without the line that names the rule set."""
    from assistant.commands import demo
    from assistant.render import text
    from assistant.render.cells import Paint
    from assistant.render.view import view
    from assistant.sources import tells

    story = demo.load(demo.FIRST)
    page = view(demo.diagnosed(demo.FIRST, story), "en", tells)
    answer = text.render(page, 100, Paint(on=False)).rstrip().rpartition("\n\n")[0]
    return f"```console\n$ {demo.command(story)}\n{answer}\n```"


def readme(root: Path = ROOT) -> str:
    """``README.md`` with today's exchange in its first console block."""
    old = (root / "README.md").read_text(encoding="utf-8")
    head, start, rest = old.partition("```console\n")
    return f"{head}{transcript()}{rest.partition('```')[2]}" if start else old


def _stale_readme(root: Path) -> list[Fault]:
    old = (root / "README.md").read_text(encoding="utf-8")
    line = old.partition("```console\n")[0].count("\n") + 1
    return [] if readme(root) == old else [Fault("README.md", line, 1, "the exchange is out of date")]


# --- pages --------------------------------------------------------------------------------


def commands() -> Iterator[str]:
    """Every command with its options."""
    from assistant.arguments import add_globals, command_parser
    from assistant.cli import load_all

    yield from ("# Commands", "", "Options of every command, before or after its name:", "")
    shared = argparse.ArgumentParser(add_help=False)
    add_globals(shared)
    yield from _options(shared, frozenset())
    common = frozenset(flag for action in shared._actions for flag in action.option_strings)
    for command in load_all():
        parser = command_parser(command)
        yield from ("", f"## gpudiag {command.NAME}", "", _sentence(command.HELP), "")
        children = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        yield from _options(parser, common)
        for action in children:
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, child in action.choices.items():
                yield from ("", f"### gpudiag {command.NAME} {name}", "", _sentence(helps.get(name, "")), "")
                yield from _options(child, common)


def _options(parser: argparse.ArgumentParser, hidden: frozenset[str]) -> Iterator[str]:
    rows = []
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction) or action.help == argparse.SUPPRESS:
            continue
        if set(action.option_strings) & hidden:
            continue
        value = _value_of(action)
        names = ", ".join(action.option_strings)
        rows.append((f"{names} {value}".strip(), action.help or ""))
    if rows:
        yield from ("| | |", "| --- | --- |")
        yield from (f"| {code(name)} | {_cell(text)} |" for name, text in rows)


def _value_of(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    value = "/".join(map(str, action.choices)) if action.choices is not None else name
    if action.nargs == "?":
        return f"[{value}]"
    return f"{value} ..." if action.nargs in ("+", "*") else value


def configuration() -> Iterator[str]:
    """Every setting."""
    from assistant.config import OPTIONS, SYSTEM_FILE

    yield from ("# Configuration", "")
    yield (
        "A flag wins over the environment, the environment over the user's file (`config.toml` in the folder `gpudiag` "
        f"where the platform keeps settings, on Linux `~/.config/gpudiag/config.toml`), that file over `{SYSTEM_FILE}`. "
        "`gpudiag config show` prints what is in force and where it came from. An unknown key in a file is an error."
    )
    yield from ("", "| key | variable | default | |", "| --- | --- | --- | --- |")
    for o in OPTIONS:
        allowed = f" One of {', '.join(map(code, o.choices))}." if o.choices else ""
        yield f"| {code(o.key)} | {code(o.variable)} | {code(o.default) or '-'} | {_cell(o.meaning.en)}{allowed} |"
    yield from ("", "```toml", 'lang = "zh"', 'site_file = "site.yaml"', 'rule_packs = ["rules", "more-rules"]', "```")
    yield from (
        "",
        "Paths in a file count from that file's folder. `GPUDIAG_RULE_PACKS` separates paths as `PATH` does.",
    )
    yield from (
        "",
        "`GPUDIAG_DEBUG=1` shows where a bug happened; `GPUDIAG_WEBHOOKS` holds addresses for [watch](../watch.md); "
        "`GPUDIAG_TRACE_SCANNER=python` reads traces without the compiled scanner, `GPUDIAG_LOG_FOLD=python` logs without compiled code; "
        "`GPUDIAG_REQUIRE` is for the test suite (CONTRIBUTING.md).",
    )


def exit_codes() -> Iterator[str]:
    """Every exit code."""
    from assistant.exits import Exit

    meaning = {
        Exit.OK: "nothing above info was found",
        Exit.FINDING: "a confirmed or probable finding of warning or worse",
        Exit.USAGE: "asked wrongly, or an input, a setting or a rule file that cannot be used",
        Exit.UNDECIDED: "no such finding, but the question stays open: nothing usable was read, or on a live machine "
        "the GPU inventory or the kernel log was not",
        Exit.BUG: "a bug in gpudiag; `GPUDIAG_DEBUG=1` shows where",
        Exit.INTERRUPTED: "interrupted",
    }
    yield from ("# Exit codes", "", "| code | name | |", "| --- | --- | --- |")
    yield from (f"| {int(e)} | {e.name} | {_cell(meaning[e])} |" for e in Exit)
    yield from ("", "With `check --nagios` the codes are those of monitoring plugins: 0 OK, 1 WARNING (a warning), "
                "2 CRITICAL (an error or worse), 3 UNKNOWN (nothing usable was read, or the call itself is wrong).")  # fmt: skip


def facts() -> Iterator[str]:
    """The whole vocabulary by area."""
    from assistant import formats
    from assistant.topics.fact import value_words
    from knowledge.facts import vocabulary

    told: dict[str, list[str]] = {}
    for f in formats.index():
        for name in f.provides:
            told.setdefault(name, []).append(f.name)
    specs = sorted(vocabulary(), key=lambda s: (s.scope, s.name))
    yield from (
        "# Facts",
        "",
        f"{len(specs)} names. `gpudiag explain fact NAME` prints one with the rules that use it.",
    )
    scope = None
    for s in specs:
        if s.scope != scope:
            scope = s.scope
            yield from ("", f"## {scope}", "", "| fact | value | meaning | told by |", "| --- | --- | --- | --- |")
        who = [*told.get(s.name, []), *(["computed"] if s.derived else []), *(["a person"] if s.ask else [])]
        fields = f" Fields: {', '.join(map(code, s.fields))}." if s.fields else ""
        yield f"| {code(s.name)} | {_cell(value_words(s, 'en'))} | {_cell(s.meaning.en)}{fields} | {', '.join(map(code, who))} |"


def inputs() -> Iterator[str]:
    """Every kind of input that is recognised."""
    from assistant import formats

    yield from ("# Inputs", "")
    yield (
        "`check --input FILE` recognises the kind of a file by its content, `check --log FILE` reads any log with all log "
        "formats at once. `-` is standard input; gzip, zstd, xz and bzip2 are unpacked. What is not recognised is said to be so."
    )
    for title, log in (("Documents", False), ("Logs", True)):
        yield from ("", f"## {title}", "", "| kind | what it is | facts |", "| --- | --- | --- |")
        found = sorted((f for f in formats.index() if f.log is log), key=lambda f: f.name)
        yield from (f"| {code(f.name)} | {_cell(f.title)} | {len(f.provides)} |" for f in found)


def probes() -> Iterator[str]:
    """Every probe of a live machine."""
    from probes.live import Cost
    from probes.live import probes as known

    price = {Cost.FREE: "free", Cost.CHEAP: "cheap", Cost.SECONDS: "seconds", Cost.HEAVY: "heavy"}
    yield from ("# Probes", "")
    yield (
        "What `gpudiag check`, `collect`, `watch` and `doctor` ask of a machine. Default probes run unless `--without` names "
        "them; the others run when `--with` or `--probe` names them, or in the place of one that gave no answer."
    )
    yield from ("", "| probe | what | runs | needs | costs | facts |", "| --- | --- | --- | --- | --- | --- |")
    for p in known():
        when = (
            f"when {code(p.instead_of)} gives no answer"
            if p.instead_of
            else ("by default" if p.default else "on request")
        )
        needs = [*(f"{' or '.join(map(code, p.needs.binaries))}" for _ in p.needs.binaries[:1]), *p.needs.privileges]
        effects = "".join(f"; {e.en}" for e in p.side_effects)
        yield (
            f"| {code(p.name)} | {_cell(p.title.en)} | {when} | {_cell(', '.join(needs)) or '-'} "
            f"| {price[p.cost]}{_cell(effects)} | {len(p.provides)} |"
        )


def rules() -> Iterator[str]:
    """Every shipped rule by area."""
    from rules.loader import load

    every = sorted(load().rules, key=lambda r: (r.area, r.id))
    yield from (
        "# Rules",
        "",
        f"{len(every)} rules. `gpudiag rules show ID` prints one with its condition, page and action.",
    )
    area = None
    for r in every:
        if r.area != area:
            area = r.area
            yield from ("", f"## {area}", "", "| rule | severity | about | problem |", "| --- | --- | --- | --- |")
        yield f"| {code(r.id)} | {r.severity} | {r.scope} | {_cell(r.title.en)} |"


def runbooks() -> Iterator[str]:
    """Every runbook."""
    from knowledge.runbook import all_runbooks

    books = all_runbooks()
    yield from ("# Runbooks", "", f"{len(books)} runbooks. `gpudiag runbook show ID` prints one, step by step.", "")
    yield from ("| runbook | steps | |", "| --- | --- | --- |")
    yield from (f"| {code(b.id)} | {len(b.steps)} | {_cell(b.title.en)} |" for b in books)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _sentence(text: str) -> str:
    return f"{opened(text)}." if text and not text.endswith(".") else text


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FaultsError as error:
        sys.exit(f"docs cannot be built: {error}")
