"""The only place that runs a command of a runbook's step.

The intent stands in the journal before anything starts, the result after it; where the intent cannot be written,
nothing runs. A command is one argument list, never a shell's line, with an environment of its own, a deadline and
an end for all that it started. What destroys something is never run here: it is shown to people.
"""
