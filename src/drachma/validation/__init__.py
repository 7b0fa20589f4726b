"""Rules for objects, with the error type, field path and message of the real API server.

:func:`writes.create`, :func:`writes.update` and :func:`writes.update_status` apply all of them; :mod:`admission` has
what depends on the rest of the cluster. Pure: the clock, gates and facts about the cluster are passed in.
"""

from drachma.validation.context import Authorizer, Context
from drachma.validation.fielderror import FieldError, Reason
from drachma.validation.writes import Verdict, create, update, update_status

__all__ = ["Authorizer", "Context", "FieldError", "Reason", "Verdict", "create", "update", "update_status"]
