"""What was found: causes and what they explain as a tree, and the proof of the one under the cursor.

Below them what was ruled out, what stays undecided, and what could not be seen. A value of a proof can be edited: the
dialog shows what would be different, and the chat is asked the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType

from knowledge.language import Text
from tui.messages import Explain, Goto
from tui.screens._pane import Pane, ScreenSpec
from tui.tones import MARKS, Tone, of_severity, of_state
from tui.widgets.columns import Cell, Column, Row
from tui.widgets.grid import Grid
from tui.widgets.tree import FOLDED, OPEN, TreeView

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from assistant.diagnosis import Diagnosis
    from assistant.proofs.outline import Entry
    from assistant.proofs.supposing import Target
    from assistant.proofs.tree import Node
    from assistant.render.sheet import Sheet
    from tui.commands import Command
    from tui.desk import Picture

BESIDE = 150  # columns from which the proof stands beside the findings
_TONES = {
    "section": Tone.DIM, "ruled_out": Tone.DIM, "note": Tone.DIM, "undecided": Tone.UNKNOWN, "unseen": Tone.UNKNOWN,
}  # fmt: skip
_MARKS = {"ruled_out": "✗"}
SHARE = 0.45  # of the height that the findings take at most, where the proof stands below them


class FindingsPane(Pane):
    """The findings above, the proof of one below."""

    NAME = "findings"
    DEFAULT_CSS = """
    FindingsPane { layout: vertical; }
    FindingsPane > Grid { height: auto; }
    FindingsPane > TreeView { height: 1fr; border-top: solid $rule; }
    FindingsPane.-beside { layout: horizontal; }
    FindingsPane.-beside > Grid { width: 2fr; height: 1fr; }
    FindingsPane.-beside > TreeView { width: 3fr; border-top: none; border-left: solid $rule; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "what_if", "What if"),
        Binding("t", "threshold", "Threshold", show=False),
        Binding("n", "why_not", "Why not"),
        Binding("o", "incident", "Incident", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._diagnosis: Diagnosis | None = None
        self._lang = ""
        self._entries: tuple[Entry, ...] = ()
        self._folds: dict[str, bool] = {}  # what was folded and unfolded by hand
        self._wanted = ""  # a target that came before there was a diagnosis
        self._shown = ""  # key of the entry whose proof is shown
        self._stale = False  # that proof is of an earlier diagnosis

    def compose(self) -> ComposeResult:
        """The tree of findings as a table; the proof."""
        yield Grid(self._columns(), id="outline")
        yield TreeView(id="proof")

    def _columns(self) -> tuple[Column, ...]:
        t = self.t
        return (
            Column("mark", "", least=1, most=1),
            Column("finding", t("finding", "发现"), least=40, stretch=True),
            Column("action", t("do", "动作"), least=8, keep=1),
        )

    # --- told by the workspace ------------------------------------------------------------

    def picture_changed(self, picture: Picture) -> None:
        """Another diagnosis, or the same in another language; a look that goes on changes nothing here."""
        d, lang = picture.diagnosis, self.desk.lang
        grid = self.query_one("#outline", Grid)
        if d is None:
            self._diagnosis, self._entries = None, ()
            grid.empty = picture.trouble or (self.t("reading …", "正在读取……") if picture.looking is not None else "")
            self._load()
            return
        if d is self._diagnosis and lang == self._lang:
            return
        from assistant.proofs.outline import outline

        if lang != self._lang:
            grid.set_columns(self._columns())
        self._diagnosis, self._lang, self._stale = d, lang, True
        self._entries = outline(d, lang)
        self._load()
        if self._wanted:
            self.show_target(self._wanted)

    def source_changed(self) -> None:
        """Another machine: nothing that was folded means anything there."""
        self._folds, self._shown, self._wanted = {}, "", ""

    def show_target(self, target: str) -> None:
        """Go to a finding: by its id or its rule."""
        if self._diagnosis is None:
            self._wanted = target
            return
        from assistant.proofs.outline import owner

        self._wanted = ""
        entry = owner(self._entries, target)
        if entry is None:
            self.app.notify(self.t(f"Nothing is found about {target} now.", f"当前没有关于 {target} 的发现。"))
            return
        self._reveal(entry)

    def _reveal(self, entry: Entry) -> None:
        by_key = {e.key: e for e in self._entries}
        under = entry.under
        while under:
            self._folds[under] = False
            under = by_key[under].under if under in by_key else ""
        self._load()
        self.query_one("#outline", Grid).select(entry.key)

    # --- the findings ---------------------------------------------------------------------

    def _load(self) -> None:
        grid, rows = self.query_one("#outline", Grid), []
        if self._entries:  # nothing is loaded for nothing: the first frame waits for it
            from assistant.proofs.outline import shown

            folded = frozenset(e.key for e in self._entries if e.leads and self._folds.get(e.key, e.folded))
            rows = [self._row(e, folded) for e in shown(self._entries, folded)]
        before = grid.row
        grid.load(rows)
        self._fit()
        if grid.row is not None and before is not None and grid.row.key == before.key:
            self._prove(grid.row.data)  # the cursor did not move, what it stands on may be another
        elif grid.row is None:
            self._prove(None)

    def _row(self, e: Entry, folded: frozenset[str]) -> Row:
        kind, section = str(e.kind), str(e.kind) == "section"
        tone = _TONES.get(kind) or (of_state(e.severity) if kind == "verdict" else of_severity(e.severity))
        sign = (
            (FOLDED if e.key in folded else OPEN) if e.leads else ("└" if kind == "symptom" else "·" if e.depth else "")
        )
        title = "  " * e.depth + (f"{sign} " if sign else "") + e.title
        title += f"  {e.count}" if section and e.count else ""
        title += f"  ({e.grade})" if e.grade else ""
        words = Tone.DIM if section else Tone.STRONG if kind in ("cause", "verdict") and not e.depth else Tone.PLAIN
        action = Cell(e.action if kind == "cause" and not e.depth else "", Tone.DIM)
        return Row(
            e.key,
            (Cell("" if section else _MARKS.get(kind) or MARKS.get(tone, ""), tone), Cell(title, words), action),
            e,
        )

    def _fit(self) -> None:
        """As high as it needs, up to its share; beside the proof where there is room."""
        grid = self.query_one("#outline", Grid)
        beside = self.size.width >= BESIDE
        self.set_class(beside, "-beside")
        most = max(4, int(self.size.height * SHARE))
        grid.styles.height = None if beside else min(len(grid.shown) + 1 if grid.shown else 3, most)

    def on_resize(self) -> None:
        """Another size."""
        self._fit()

    def on_grid_moved(self, event: Grid.Moved) -> None:
        """The proof of what is under the cursor."""
        event.stop()
        self._prove(event.row.data if event.row is not None else None)

    def on_grid_chosen(self, event: Grid.Chosen) -> None:
        """Fold what has others below it; else to its proof."""
        event.stop()
        entry: Entry | None = event.row.data if event.row is not None else None
        if entry is None:
            return
        if entry.leads:
            self._folds[entry.key] = not self._folds.get(entry.key, entry.folded)
            self._load()
        else:
            self.query_one("#proof", TreeView).focus()

    def filter(self, text: str) -> None:
        """Every entry is searched, folded or not."""
        if text and self._diagnosis is not None:
            self._folds.update({e.key: False for e in self._entries if e.leads})
            self._load()
        self.query_one("#outline", Grid).filter(text)
        self._fit()

    @property
    def grid(self) -> Grid | None:
        """The findings, wherever the keys are; None while they are being made."""
        return next(iter(self.query("#outline").results(Grid)), None)

    # --- the proof ------------------------------------------------------------------------

    def _prove(self, entry: Entry | None) -> None:
        proof = self.query_one("#proof", TreeView)
        if entry is None or self._diagnosis is None:
            self._shown = ""
            proof.load((), anew=True)
            return
        if entry.key == self._shown and not self._stale:
            return
        from assistant.proofs.tree import tree
        from tui.widgets.proof import branches

        proof.load(branches(tree(entry, self._diagnosis, self._lang, self._entries)), anew=entry.key != self._shown)
        self._shown, self._stale = entry.key, False

    def on_tree_view_chosen(self, event: TreeView.Chosen) -> None:
        """Edit a value, go where a link leads, or fold."""
        event.stop()
        branch = event.branch
        node: Node | None = branch.data if branch is not None else None
        if branch is None or node is None:
            return
        if node.leads_to is not None:
            self._follow(*node.leads_to)
        elif node.targets:
            self._edit(node.targets[0])
        elif branch.leads:
            event.tree.toggle(branch)

    def _follow(self, screen: str, target: str) -> None:
        if screen == self.NAME:
            self.show_target(target)
        else:
            self.post_message(Goto(screen, target))

    @property
    def _entry(self) -> Entry | None:
        row = self.query_one("#outline", Grid).row
        return row.data if row is not None else None

    @property
    def _node(self) -> Node | None:
        """What is under the cursor of the proof, while that has the keys."""
        proof = self.query_one("#proof", TreeView)
        return proof.branch.data if proof.has_focus and proof.branch is not None else None

    # --- what if, why not -----------------------------------------------------------------

    def action_what_if(self) -> None:
        """Edit the value under the cursor; on a finding the first that its proof has."""
        node = self._node
        targets = node.targets if node is not None else self._targets()
        if targets:
            self._edit(targets[0])
        else:
            self.app.notify(self.t("Nothing here can be supposed otherwise: choose a clause of a proof.",
                                   "此处没有可假设的值：请选择证明中的一个条件。"))  # fmt: skip

    def action_threshold(self) -> None:
        """Edit the number that a clause compares with."""
        node = self._node
        found = [t for t in (node.targets if node is not None else self._targets()) if str(t.what) == "threshold"]
        if found:
            self._edit(found[0])
        else:
            self.app.notify(self.t("No threshold stands here.", "此处没有阈值。"))

    def _targets(self) -> tuple[Target, ...]:
        branches = self.query_one("#proof", TreeView).shown
        return tuple(t for b in branches for t in b.data.targets)

    def _edit(self, target: Target) -> None:
        from tui.widgets.whatif import WhatIf

        assert self._diagnosis is not None
        entry = self._entry
        focus = entry.findings[0].id if entry is not None and entry.findings else ""

        def asked(query: Any) -> None:
            if query is not None:
                self.post_message(Explain(query.text, query))

        self.app.push_screen(WhatIf(target, self._diagnosis, focus), asked)

    def action_why_not(self) -> None:
        """Pick what was not concluded."""
        if self._diagnosis is None:
            return
        from tui.widgets.whynot import WhyNot

        self.app.push_screen(WhyNot(self._diagnosis), lambda said: self.ask_why_not(said or ""))

    def ask_why_not(self, said: str) -> None:
        """Why a rule, a code or a suspicion is not among the findings."""
        if not said:
            return
        from assistant.topics.rule import names

        lang = self.desk.lang
        if self._diagnosis is not None and said in {*names(), *(r.rule.id for r in self._diagnosis.undecided)}:
            from assistant.proofs.hypotheses import query

            made = query(said, self._diagnosis, self.desk.ruleset(), lang)
            self.post_message(Explain(made.text, made))
        else:
            self.post_message(Explain(Text(f"why not {said}?", f"为什么不是 {said}？").in_(lang)))

    def action_incident(self) -> None:
        """Open an incident about the finding under the cursor, or go to the one that is open."""
        entry, d = self._entry, self._diagnosis
        held = {f.id for f in d.findings} if d is not None else set()
        found = next((f.id for f in (entry.findings if entry is not None else ()) if f.id in held), "")
        self.post_message(Goto("incidents", f"open {found}".strip()))

    # --- habits ---------------------------------------------------------------------------

    def question(self) -> str:
        """Of the clause under the cursor, or of the finding."""
        node, entry = self._node, self._entry
        if node is not None and node.question:
            return node.question
        return entry.question if entry is not None else ""

    def copied(self) -> str:
        """A command, a raw line, a finding: as it can be pasted."""
        node = self._node
        if node is not None:
            return node.copy or node.text
        entry = self._entry
        return " · ".join(filter(None, (entry.title, entry.grade, entry.action))) if entry is not None else ""

    def exported(self) -> Sheet | None:
        """The findings, and the proof that is shown."""
        if self._diagnosis is None:
            return None
        from assistant.proofs.page import page

        return page(self._diagnosis, self._entries, self._entry, self._lang)

    def own_keys(self) -> Sequence[tuple[str, str]]:
        """For help."""
        t = self.t
        return (
            (
                "Enter",
                t(
                    "on a finding: fold, or to its proof; on a clause: edit its value",
                    "发现：折叠或进入证明；条件：编辑其值",
                ),
            ),
            ("Tab", t("between the findings and the proof", "在发现列表与证明之间切换")),
            ("h l", t("in the proof: fold, unfold", "证明中：折叠、展开")),
            ("w t", t("what if the value, the threshold were another", "假设取值或阈值不同")),
            (
                "n",
                t(
                    "why not something else: pick a rule, or say what you suspect",
                    "为什么不是别的：选择规则，或说出猜测",
                ),
            ),
            ("o", t("open an incident about the finding", "为该发现开立事件")),
            ("y", t("copy the finding, the raw line, the command", "复制发现、原始行或命令")),
        )

    def commands(self) -> Sequence[Command]:
        """Go to a finding; suppose; ask why not."""
        from tui.commands import Command

        def suppose(said: str) -> None:
            self.post_message(Explain(Text(f"what if {said}?", f"如果{said}，结论会变化吗？").in_(self.desk.lang)))

        return (
            Command("finding", "RULE", Text("go to a finding", "跳到一项发现"), self.show_target, lambda _: self._rules()),
            Command("whatif", "WORDS", Text("what would be different: :whatif gpu.ecc.mode = off", "假设某项取值：:whatif gpu.ecc.mode = off"),
                    suppose),
            Command("whynot", "[RULE]", Text("why something else was not concluded", "为什么不是别的原因"),
                    lambda said: self.ask_why_not(said) if said else self.action_why_not(), _rule_names),
        )  # fmt: skip

    def _rules(self) -> list[str]:
        found = [f.rule.id for e in self._entries for f in e.findings] + [
            u.rule.id for e in self._entries for u in e.undecided
        ]
        return list(dict.fromkeys(found))

    def kept(self) -> Mapping[str, Any]:
        """The finding under the cursor, and what was folded."""
        entry = self._entry
        return {"chosen": entry.key if entry is not None else "", "folds": self._folds}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """The same, where it is still there."""
        folds = kept.get("folds")
        if isinstance(folds, dict):
            self._folds = {k: v for k, v in folds.items() if isinstance(k, str) and isinstance(v, bool)}
        chosen = kept.get("chosen")
        if self._diagnosis is not None:
            self._load()
            if isinstance(chosen, str):
                self.query_one("#outline", Grid).select(chosen)


def _rule_names(_: str) -> list[str]:
    from assistant.topics.rule import names

    return sorted(names())


SCREEN = ScreenSpec(
    "findings", 3, Text("Findings", "发现"), FindingsPane,
    Text("causes and what they explain, each with its proof; what if, why not", "原因及其后果，附完整证明；可假设、可追问为什么不是"),
)  # fmt: skip
