"""``gpudiag incident report`` and ``link``, and what `show`, `open` and `note` tell of other incidents and other people."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from assistant.output import say, write

if TYPE_CHECKING:
    from assistant.config import Output
    from assistant.incidents.book import Book
    from assistant.incidents.events import Entry, Hand
    from assistant.incidents.fold import Incident
    from assistant.incidents.impact import Price
    from assistant.incidents.report import Report
    from assistant.render.sheet import Part

_SUFFIXES = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json", ".txt": "text"}
NUMBER = "number of the incident"


def add_actions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """``report`` and ``link``; returns the parser of the one that writes."""
    report = actions.add_parser("report", help="a post-mortem: cause, impact, timeline, evidence, what is open")
    link = actions.add_parser("link", help="say that two incidents belong together: the same cause on several nodes")
    for child in (report, link):
        child.add_argument("number", type=int, metavar="NUMBER", help=NUMBER)
    report.add_argument(
        "-o", "--output", default="", metavar="FILE", help="write it there; .md, .html and .json say the format"
    )
    report.add_argument(
        "--price",
        nargs=2,
        metavar=("PER_GPU_HOUR", "CURRENCY"),
        help="also count money, such as --price 2.10 EUR (default: the setting gpu_hour_price)",
    )
    from assistant.commands._narration import add_option

    add_option(report, "--no-narrate", "below the summary, also one that the language model drafts (llm_model)")
    link.add_argument("--with", type=int, required=True, metavar="NUMBER", dest="other", help="the other incident")
    link.add_argument(
        "--merge", action="store_true", help="the first also takes up the findings of the other, which is closed"
    )
    return link


def add_note_options(parser: argparse.ArgumentParser) -> None:
    """Of `note`: what somebody else said, and where."""
    parser.add_argument("--from", default="", metavar="NAME", dest="said_by", help="a message: who said it")
    parser.add_argument("--where", default="", metavar="PLACE", help="a message: where it was said, such as '#gpu-ops'")


def noted(args: argparse.Namespace, words: str) -> Entry:
    """A note; with --from or --where what somebody said elsewhere."""
    from assistant.incidents import events

    if args.said_by or args.where:
        return events.message(words, args.where, args.said_by)
    return events.note(words)


# --- other incidents ----------------------------------------------------------------------


def tell_others(book: Book, incident: Incident, args: argparse.Namespace) -> None:
    """To stderr, a line each: the earlier incident that is most like it, and open ones that may be the same matter."""
    from assistant.incidents.links import offers
    from assistant.incidents.similar import PAST, line, similar
    from assistant.store.location import StoreError

    lang = args.settings.output.lang
    try:
        others = book.incidents(limit=PAST)
    except StoreError:  # the incident is kept, and that is what was asked for
        return
    for like in similar(incident, others, 1):
        say(f"gpudiag: {line(like, incident.opened_at, lang)}", args.quiet)
    for offer in offers(incident, others):
        say(f"gpudiag: {offer.line(incident.number, lang)}", args.quiet)


def show(book: Book, args: argparse.Namespace) -> int:
    """One incident with the others that it is like; with --timeline only what happened."""
    from assistant.incidents import pages
    from assistant.incidents.links import offers
    from assistant.incidents.report_page import timeline_sheet
    from assistant.incidents.similar import PAST, similar
    from assistant.render.sheet import show as shown

    incident, output = book.incident(args.number), args.settings.output
    if args.timeline:
        write(shown(timeline_sheet(incident, output.lang), output))
        return 0
    others = book.incidents(limit=PAST)
    write(shown(pages.one(incident, output.lang, similar(incident, others), offers(incident, others)), output))
    return 0


def link(book: Book, hand: Hand, args: argparse.Namespace) -> Incident:
    """Both say so."""
    from assistant.incidents.links import link as join

    return join(book, args.number, args.other, hand, args.merge)


# --- the report ---------------------------------------------------------------------------


def report(book: Book, args: argparse.Namespace) -> int:
    """Write the post-mortem."""
    from assistant.incidents.deeds import of_journal
    from assistant.incidents.report import report as made
    from assistant.incidents.similar import PAST, similar

    output = args.settings.output
    shape = args.format or next((s for end, s in _SUFFIXES.items() if args.output.endswith(end)), output.format)
    price = _price(args)
    incident = book.incident(args.number)
    likes = similar(incident, book.incidents(limit=PAST))
    text = _with_draft(
        args,
        made(incident, likes, price, of_journal(args.settings.history.url, incident)),
        output._replace(format=shape),
    )
    if not args.output:
        write(text)
        return 0
    from assistant.trace.flame import save
    from knowledge.language import Text

    save(args.output, text)
    say(f"gpudiag: {Text('written to', '已写入').in_(output.lang)} {args.output}", args.quiet)
    return 0


def _price(args: argparse.Namespace) -> Price | None:
    from assistant.incidents.impact import price_of, set_price

    return price_of(*args.price) if args.price else set_price(args.settings.gpu_hour_price)


def rendered(made: Report, output: Output, draft: tuple[Part, ...] = ()) -> str:
    """A report in the format of `output`. `draft` stands below the summary; a page of HTML takes none."""
    from assistant.incidents.report_page import sheet
    from assistant.render.sheet import Heading, show

    if output.format == "html":
        from assistant.incidents.report_html import render

        return render(made, output.lang)
    page = sheet(made, output.lang)
    second = [n for n, part in enumerate(page.parts) if isinstance(part, Heading)][1]
    return show(page._replace(parts=(*page.parts[:second], *draft, *page.parts[second:])), output)


def _with_draft(args: argparse.Namespace, made: Report, output: Output) -> str:
    """The report; with --narrate it waits for the summary that a model drafts."""
    from assistant.commands._narration import narrating

    with narrating(args) as narration:
        if narration is None:
            return rendered(made, output)
        from assistant.narrate.asks import postmortem

        narration.ask(postmortem(made, output.lang), output.lang)
        if output.format in ("text", "markdown"):
            return rendered(made, output, narration.drafted())
        return narration.within(rendered(made, output), output.format, draft=True, ahead='<h2 id="cause">')
