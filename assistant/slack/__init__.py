"""Slack: answers as Block Kit, and the bot that gives them.

`blocks` and `cards` turn what gpudiag says into plain dicts, within Slack's limits (`budget`) and so that nothing of a log,
a process or a person becomes a mention, a link or formatting (`rich`, `mrkdwn`). They import nothing of Slack's.
"""
