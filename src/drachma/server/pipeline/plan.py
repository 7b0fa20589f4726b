"""Plans: the intent of a call that writes to one object, and the answer to the call.

Operations make plans; :mod:`drachma.server.pipeline.dispatcher` has them committed, alone or together.
"""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from drachma.server.calls.call import Call
from drachma.server.pipeline.answer import Answer
from drachma.server.pipeline.intent import Intent, Outcome
from drachma.server.pipeline.services import Services


class Plan(msgspec.Struct, frozen=True, eq=False):
    """One write. ``answer`` makes the answer from the outcome of the intent."""

    intent: Intent
    answer: Callable[[Outcome], Answer]


Planner: TypeAlias = Callable[[Services, Call], Plan]
"""Reads a call; refuses with a Status a call that is wrong whatever is stored."""
