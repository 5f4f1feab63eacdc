"""What a recorded finding is about: which GPU, which parts that nodes share. Odd texts of other writers are about nothing."""

from __future__ import annotations

from knowledge.observation import Scope, Subject


def subject_of(text: str) -> Subject | None:
    """A subject as it was recorded (``node:n1/gpu:0000:3b:00.0``); None for what is none."""
    from assistant.store.codec import subject_of as parsed

    try:
        return parsed(text) if text else None
    except ValueError:
        return None


def gpu_of(text: str) -> str:
    """The GPU that a recorded subject is, or is part of; empty without one, and for one of which nobody said which it is."""
    subject = subject_of(text)
    for s in subject.ancestors() if subject is not None else ():
        if s.scope is Scope.GPU and s.id and not s.id.startswith("unknown:"):
            return s.id
    return ""
