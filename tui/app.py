"""The app: themes, keys that hold everywhere, and the way of messages between workers and screens."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.events import Key

from knowledge.errors import GpudiagError, UsageError
from tui import memory
from tui.desk import AsOf, Brought, Desk, Timed
from tui.feed import FrameCame
from tui.messages import Explain, Goto, MomentChanged, PictureChanged, SourceChanged
from tui.talk import Failed, GoesOn, Heard, Said, Waits, Working
from tui.themes import NAMES, THEMES
from tui.work import Broken, Jobs
from tui.workspace import Workspace

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from textual import events
    from textual.app import SystemCommand
    from textual.screen import Screen

# what is typed after these is a command, a filter, a sentence
OPENING = frozenset(("colon", "slash", "c", "1", "alt+1"))
PAUSE = 0.5  # seconds in which no key answers a question that has just come up: it was meant for what was there before


class GpudiagApp(App[int]):
    """gpudiag in the terminal."""

    TITLE = "gpudiag"
    ENABLE_COMMAND_PALETTE = True
    CSS = """
    * { scrollbar-background: $background; scrollbar-background-hover: $background; scrollbar-background-active: $background;
        scrollbar-color: $rule; scrollbar-color-hover: $secondary; scrollbar-color-active: $accent; scrollbar-corner-color: $background; }
    ToastRack { margin-bottom: 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+p", "command_palette", "Palette", show=False),
        Binding("f1", "help", "Help", show=False),
        Binding("ctrl+q", "quit", "Quit", show=False, priority=True),
        Binding("ctrl+c", "interrupt", "Quit", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", "Suspend", show=False),
    ]

    def __init__(self, args: argparse.Namespace, *, pause: float = PAUSE) -> None:
        super().__init__()
        self.args = args
        self.pause = pause
        self.kept = memory.load(args.settings)
        self.jobs = Jobs(self)
        self.desk = Desk(self, self.jobs, args)
        self.first_paint: float | None = None  # time.monotonic() of it; for measurements
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = args.theme or memory.word(self.kept, "theme", NAMES, "dark")
        self.workspace = Workspace(args.screen or ("traces" if args.trace else "chat"))

    def t(self, en: str, zh: str) -> str:
        """A word of ours in the language of the app."""
        return self.desk.t(en, zh)

    def on_mount(self) -> None:
        """Show the frame first; then look."""
        self.push_screen(self.workspace)
        self.call_after_refresh(self._painted)

    def _painted(self) -> None:
        self.first_paint = time.monotonic()
        self.jobs.begin()
        self.desk.look()
        self.set_interval(1.0, self._tick)

    def _tick(self) -> None:
        self.desk.tick()
        if self.workspace.is_mounted:
            self.workspace.tick()

    # --- keys -----------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """A key after which others are letters does its work before the next key is looked at.

        By Textual's way around the widgets, what came in the same burst (a slow line, a paste) would still be keys.
        """
        if isinstance(event, Key) and not event.is_forwarded and event.key in OPENING and self.screen is self.workspace:
            active = self.screen.active_bindings.get(event.key)
            typed = self.focused is not None and self.focused.check_consume_key(event.key, event.character)
            if active is not None and active.enabled and not typed and not active.binding.priority:
                await self.run_action(active.binding.action, active.node)
                return
        await super().on_event(event)

    # --- messages: from workers to screens ------------------------------------------------

    def on_brought(self, message: Brought) -> None:
        """A look has something to tell."""
        self.desk.brought(message.picture)

    def on_broken(self, message: Broken) -> None:
        """Work beside the screen broke."""
        self.notify(message.said, severity="error", markup=False)

    def on_timed(self, message: Timed) -> None:
        """What happened when is known."""
        self.desk.timed(message)
        if message.trouble:
            self.notify(message.trouble, severity="warning", markup=False)

    def on_as_of(self, message: AsOf) -> None:
        """What was known at a moment."""
        self.desk.as_of(message.picture)

    def on_frame_came(self, message: FrameCame) -> None:
        """A reading of this machine."""
        self.desk.feed.came(message.frame)

    def on_moment_changed(self, message: MomentChanged) -> None:
        """Other readings are to be shown."""
        self.workspace.moment_changed(message)

    def on_picture_changed(self, message: PictureChanged) -> None:
        """The picture is another one."""
        self.workspace.picture_changed(message.picture)

    def on_source_changed(self, _: SourceChanged) -> None:
        """Something else is looked at."""
        self.workspace.source_changed()

    def on_explain(self, message: Explain) -> None:
        """Somebody pointed at something: ask about it, resting on what is on the screen."""
        if self.workspace.narrow:
            self.workspace.go("chat")
        self.desk.talk.say(message.question, message.query, about=message.about or self.desk.picture, pointed=True)

    def on_goto(self, message: Goto) -> None:
        """Somebody wants to see something."""
        try:
            self.workspace.show(message.screen, message.target)
        except GpudiagError as error:
            self.notify(error.in_(self.desk.lang), severity="error", markup=False)

    def on_heard(self, message: Heard) -> None:
        """A turn of the talk began."""
        self.workspace.chat.heard(message)

    def on_working(self, message: Working) -> None:
        """A turn goes on."""
        self.workspace.chat.working(message)

    def on_said(self, message: Said) -> None:
        """A turn ended."""
        if self.desk.talk.over(message):
            self.workspace.chat.said(message)

    def on_failed(self, message: Failed) -> None:
        """A turn broke, or was given up."""
        if self.desk.talk.over(message):
            self.workspace.chat.failed(message)

    def on_waits(self, message: Waits) -> None:
        """Something was said while a turn is under way, or waits no longer."""
        self.workspace.chat.waits(message)

    def on_goes_on(self, message: GoesOn) -> None:
        """A conversation of before goes on."""
        self.workspace.chat.goes_on(message)

    # --- commands -------------------------------------------------------------------------

    def ask(self, question: str) -> None:
        """Ask in the chat."""
        self.workspace.go("chat")
        self.desk.talk.say(question, about=self.desk.picture)

    def open_files(self, line: str) -> None:
        """Look at files instead. UsageError when there is none of that name."""
        import shlex

        from tui.sources import origin_of

        try:
            names = shlex.split(line)
        except ValueError as error:
            raise UsageError(f"{line}: {error}", zh=f"引号未闭合：{line}") from None
        self.desk.open(origin_of(names))

    def open_live(self) -> None:
        """Look at this machine again."""
        from assistant.session.state import Origin

        self.desk.open(Origin())

    def open_host(self, name: str) -> None:
        """Look at a machine of the inventory. UnknownNameError with the nearest names for one that is not there."""
        from assistant.inventory.model import Hosts
        from assistant.inventory.target import named
        from assistant.session.state import Origin

        node = named(name.strip(), self.desk.settings, self.desk.others or Hosts())
        self.desk.open(Origin(host=node.name) if node is not None else Origin())

    def choose_theme(self, name: str) -> None:
        """UsageError for an unknown one."""
        if name not in NAMES:
            raise UsageError(f"there is no theme {name!r}", hint=", ".join(NAMES), zh=f"没有主题 {name!r}")
        self.theme = name

    def choose_language(self, lang: str) -> None:
        """UsageError for one that is not spoken."""
        from knowledge.language import LANGUAGES

        if lang not in LANGUAGES:
            raise UsageError(f"there is no language {lang!r}", hint=", ".join(LANGUAGES), zh=f"没有语言 {lang!r}")
        self.desk.lang = lang
        self.desk.settings = self.desk.settings._replace(output=self.desk.settings.output._replace(lang=lang))
        self.desk.time_again()
        self.workspace.language_changed()

    def new_talk(self) -> None:
        """Begin a new conversation."""
        self.args.new = True
        self.workspace.chat.cleared()

    def action_help(self) -> None:
        """Keys and commands."""
        from tui.help import HelpScreen

        self.push_screen(HelpScreen())

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """What the palette (Ctrl-P) offers: the `:` commands."""
        from textual.app import SystemCommand

        from tui import commands

        for command in commands.available(self):
            title = f":{command.name} {command.usage}".strip()
            yield SystemCommand(title, command.about.in_(self.desk.lang), lambda c=command: self._chosen(c))

    def _chosen(self, command: Any) -> None:
        from tui.widgets.command_line import CommandLine

        if command.usage:
            self.workspace.query_one(CommandLine).open(":", f"{command.name} ")
            return
        try:
            command.run("")
        except GpudiagError as error:
            self.notify(error.in_(self.desk.lang), severity="error", markup=False)

    # --- the end --------------------------------------------------------------------------

    def on_unmount(self) -> None:
        """Remember where one was; end the work."""
        self.jobs.close()

    def keep(self) -> None:
        """Write what the next start is to find."""
        kept = {**self.kept, **self.workspace.kept(), "theme": self.theme}
        memory.save(self.args.settings, {k: v for k, v in kept.items() if k != "schema"})

    def leave(self, code: int = 0) -> None:
        """Keep, and end with an exit code."""
        self.keep()
        self.exit(code)

    async def action_interrupt(self) -> None:
        """Break off what is under way; else copy what is selected; else leave."""
        from tui.incidents.walking import WalkDialog

        if isinstance(self.screen, WalkDialog):
            self.screen.action_leave()
            return
        if self.desk.talk.cancel():
            return
        if text := self.screen.get_selected_text():
            self.copy_to_clipboard(text)
            self.screen.clear_selection()
            return
        await self.action_quit()

    async def action_quit(self) -> None:
        """Leave; nothing is asked, for nothing is lost."""
        self.leave()


def desk_of(app: App[Any]) -> Desk:
    """The desk of the app that a widget stands in."""
    assert isinstance(app, GpudiagApp)
    return app.desk
