"""The planner: what is still worth looking at, which question only a person can answer, and when to stop.

Three-valued logic tells: a rule of which the outcome is settled is not asked about, and of an open one only the facts
that can still move it. Probes are ranked by what they settle over what they cost.
"""

from __future__ import annotations

from assistant.planner.answers import answer_value, only_answer
from assistant.planner.goal import goal_of
from assistant.planner.model import DONT_KNOW, Answer, Candidate, Goal, Plan, Question
from assistant.planner.planning import plan

__all__ = [
    "DONT_KNOW",
    "Answer",
    "Candidate",
    "Goal",
    "Plan",
    "Question",
    "answer_value",
    "goal_of",
    "only_answer",
    "plan",
]
