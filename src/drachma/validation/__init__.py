"""Rules for objects, with the error type, field path and message of the real API server.

Constraints on fields stand in ``.rules`` files next to the modules, in the notation of :mod:`typerules`; rules between
fields are functions of the modules. The rules of a kind are a record (:mod:`kindrules`) that the server's record of the
kind refers to. :mod:`writes` prepares and checks objects of ``resource.k8s.io``. Pure: the clock, gates and facts about
the cluster are passed in.
"""

from drachma.validation.context import Authorizer, Context
from drachma.validation.fielderror import FieldError, Reason

__all__ = ["Authorizer", "Context", "FieldError", "Reason"]
