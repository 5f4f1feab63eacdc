"""The session as what it is: a function of what happened. Talks over recorded incidents, events in, steps out."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assistant.commands.demo import FOLDER, load, names
from assistant.commands.demo import FOLDER as DEMOS
from assistant.config import Settings
from assistant.config import load as load_settings
from assistant.render import reply as render
from assistant.session.core import Session
from assistant.session.replay import RecordedEyes
from assistant.session.state import Origin, Seen, State, plain, restored
from assistant.session.steps import Ask, Collect, Collected, Conclude, Confirm, Event, Recalled, Said, Step, Write, Written
from assistant.session.talk import session_of
from assistant.sources import tells
from rules.loader import RuleSet
from rules.loader import load as load_rules
