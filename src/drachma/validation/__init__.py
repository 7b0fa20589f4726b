"""Rules for objects, with the error type, field path and message of the real API server.

A module for each kind or for what several kinds have in common; :mod:`writes` puts those of ``resource.k8s.io``
together. Which rules apply to a request is decided by the server's pipeline, which is also what ``drachma validate``
asks. Pure: the clock, gates and facts about the cluster are passed in.
"""

from drachma.validation.context import Authorizer, Context
from drachma.validation.fielderror import FieldError, Reason

__all__ = ["Authorizer", "Context", "FieldError", "Reason"]
