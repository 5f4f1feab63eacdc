"""The proof of a finding on the screen: `assistant.proofs.tree` as branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.tones import MARKS, Tone, of_severity, of_state
from tui.widgets.tree import Branch, Piece

if TYPE_CHECKING:
    from assistant.proofs.tree import Node

TRUTHS = {
    "true": Piece("✔"), "false": Piece("✗", Tone.DIM), "unknown": Piece("?", Tone.UNKNOWN),
}  # fmt: skip


def branches(nodes: Sequence[Node]) -> list[Branch]:
    """Every node as a branch, top to bottom; the node is its `data`."""
    from assistant.proofs.tree import walk

    return [_branch(depth, node) for depth, node in walk(nodes)]


def _branch(depth: int, n: Node) -> Branch:
    from assistant.proofs.tree import Kind

    tone, mark, gap = Tone.PLAIN, Piece(""), False
    match n.kind:
        case Kind.TITLE:
            tone = (
                of_severity(n.severity)
                if n.severity in ("info", "warning", "error", "critical")
                else of_state(n.severity)
            )
            mark, tone = Piece(MARKS.get(tone, " "), tone), Tone.STRONG
            if not n.severity:
                mark = Piece("")
        case Kind.FIELDS:
            tone = Tone.DIM
        case Kind.HEADING:
            tone, gap = Tone.STRONG, True
        case Kind.GROUP | Kind.CLAUSE | Kind.MISSING:
            mark = TRUTHS.get(str(n.truth), Piece(""))
            tone = Tone.DIM if str(n.truth) == "false" else Tone.PLAIN
        case Kind.COMMAND:
            mark, tone = Piece("$", Tone.DIM), Tone.ACCENT
        case Kind.LINK:
            severity = of_severity(n.severity)
            mark, tone = Piece(MARKS.get(severity, "→"), severity if n.severity else Tone.DIM), Tone.ACCENT
        case _:
            pass
    right = (Piece(n.value, Tone.STRONG if str(n.truth) == "true" else Tone.PLAIN), Piece(n.against, Tone.DIM))
    below = (Piece(n.raw, Tone.DIM), Piece(n.place, Tone.DIM))
    return Branch(
        n.key, depth, Piece(n.text, tone), mark, tuple(p for p in right if p.text), tuple(p for p in below if p.text),
        bool(n.children), n.folded, gap, n,
    )  # fmt: skip
