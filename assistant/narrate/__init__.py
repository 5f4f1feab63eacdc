"""Narration: a language model may retell an answer that stands already. It decides nothing, and nothing waits for it.

Two halves that meet in `narrator`:

::

    pure                                               processes and files
    material, placeholders   findings as JSON            hosts      which one server may be spoken to
    prompt   a reply -> messages, placeholders only    worker     starts, asks, ends the child; every request has a deadline
    redact   pseudonyms on the final payload           child      the only program that imports litellm, in a process of its own
    fence    what came back: may it be shown?          limits     requests, tokens and money, counted in a file
             statements: what may be told of a finding process    one child and its pipes; completion: one whole JSON object, or why not
             telling: where each of them may stand
    reword   prepare(), finish(): both together        setup      what is configured, or what is missing; reasons: why nothing is shown

    narrator  Narrator(settings).begin(reply) -> Pending;  pending.result(timeout) -> Narrated | Withheld, never an exception

The child knows nothing of gpudiag, has no tool to offer the model, no environment, and walls of the kernel around it (walls.py): it is handed its connections.
Whatever goes wrong, the deterministic text stands, and one line in narration.log says why there is no other.
"""
