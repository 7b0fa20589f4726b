"""Plans: what a call that writes to one object intends, and how it is answered once that has happened.

Operations make plans of calls; :mod:`drachma.server.pipeline.dispatcher` has them committed, alone or together with
others.
"""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from drachma.server.calls.call import Call
from drachma.server.pipeline.answer import Answer
from drachma.server.pipeline.intent import Intent, Outcome
from drachma.server.pipeline.services import Services


class Plan(msgspec.Struct, frozen=True, eq=False):
    """One write. ``answer`` makes the answer of what the intent left."""

    intent: Intent
    answer: Callable[[Outcome], Answer]


Planner: TypeAlias = Callable[[Services, Call], Plan]
"""Reads a call, and refuses with a Status what makes no sense whatever is stored."""
