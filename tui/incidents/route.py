"""A walk of the app, set up as ``gpudiag incident run`` does it. In a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knowledge.errors import UsageError
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.incidents.fold import Incident
    from assistant.incidents.looking import Looker, Sight
    from assistant.incidents.walk_parts import Way
    from tui.desk import Desk
    from tui.incidents.asking import Asker
    from tui.incidents.orders import RunOrder


def walked(desk: Desk, number: int, order: RunOrder, asker: Asker) -> bool:
    """Walk it; True at its end, False when it was left. UsageError, StoreError, MovedError when it cannot go on."""
    from assistant.incidents.book import Book
    from assistant.incidents.events import Hand
    from assistant.incidents.looking import looker
    from assistant.incidents.walk import Walk
    from assistant.incidents.who import person
    from assistant.journal import Journal

    url, lang = "off" if desk.args.no_history else desk.settings.history.url, desk.lang
    book = Book(url)
    incident = _open(book.incident(number))
    _complain(incident, asker)
    node = order.node or (incident.hosts[0] if len(incident.hosts) == 1 else "")
    look, here = looker(desk.settings, node)
    if not node:
        asker.say(Text(
            "It is not known which machine this is about: nothing is run on it. :run --node NAME says it.",
            "不清楚涉及哪台机器，因此不会在其上运行命令。:run --node 名称 可指定。"))  # fmt: skip
    way = _way(incident, order, node, here)
    sight = _sight(desk, node, look)
    return Walk(
        book, number, Hand(person(), "tui"), Journal(url), sight, asker, way, lang, asker.sleep, asker.left
    ).run()  # fmt: skip


def _open(incident: Incident) -> Incident:
    n = incident.number
    if not incident.is_open:
        raise UsageError(
            f"incident {n} is closed", hint=":status open begins it again",
            zh=f"事件 {n} 已关闭", hint_zh=":status open 可重新打开",
        )  # fmt: skip
    if not incident.runbooks:
        raise UsageError(
            "the incident follows no runbook yet", hint=":runbook ID follows one",
            zh="该事件尚无处置手册", hint_zh=":runbook ID 可添加一份",
        )  # fmt: skip
    return incident


def _complain(incident: Incident, asker: Asker) -> None:
    """What is not to go unsaid of its runbooks."""
    from assistant.incidents.progress import books_of

    for name, book in books_of(incident.runbooks).items():
        if book is None:
            asker.say(
                Text(
                    f"There is no runbook {name} any more; its steps are left out.",
                    f"处置手册 {name} 已不存在，其步骤被略过。",
                )
            )
        elif book.file:
            asker.say(
                Text(f"Runbook {name} is the site's own, {book.file}.", f"处置手册 {name} 为本站点自有：{book.file}。")
            )


def _way(incident: Incident, order: RunOrder, node: str, here: bool) -> Way:
    from assistant.incidents.events import named_step
    from assistant.incidents.progress import books_of
    from assistant.incidents.walk_parts import Way

    books = books_of(incident.runbooks)
    only = "/".join(named_step(order.step, books)) if order.step else ""
    begin = "/".join(named_step(order.begin, books)) if order.begin else ""
    return Way(node, here, order.yes_safe, order.show_only, only, begin, order.take_over)


def _sight(desk: Desk, node: str, look: Looker | None) -> Sight:
    """The machine itself; the recording that is looked at, where that is of this node and the machine cannot be reached."""
    from assistant.incidents.looking import Sight

    picture = desk.picture
    recorded = not picture.origin.live and picture.diagnosis is not None and picture.host == node
    if look is None and recorded and picture.diagnosis is not None:
        return Sight(None, picture.diagnosis.facts)
    return Sight(look)
