"""What the model is asked for."""

from __future__ import annotations

from assistant.narrate.prompt import postmortem, reword
from tests.cases import each


@each(("lang", "asked", "other"), [("en", "Write English.", "Write Chinese"), ("zh", "Write Chinese", "Write English")])
def test_the_model_is_asked_for_the_language_of_the_answer_and_for_no_other(lang: str, asked: str, other: str) -> None:
    for system, _ in (reword({}, "operator", lang), postmortem({}, lang)):
        assert asked in system["content"]
        assert other not in system["content"]
