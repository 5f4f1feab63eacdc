"""Incidents: what happened, who did what about it, and how it ended.

An incident is an append-only log of events (`events`), folded into what it is now (`fold`). It begins with a diagnosis or
by hand (`opening`), walks the steps of its runbooks (`progress`), and lies in the history (`book`). `words` and `pages`
say all of that to people; nothing here knows a surface. `similar` finds earlier ones that are like it, `links` open ones that may be
the same matter, and `report` (with `impact`: GPU-hours) makes the post-mortem of it.
"""
