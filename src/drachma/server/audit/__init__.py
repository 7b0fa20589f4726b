"""The audit log: one JSON document per line, with upstream's levels and stages."""

from drachma.server.audit.auditor import Auditor
from drachma.server.audit.log import Log
from drachma.server.audit.policy import Policy, read

__all__ = ["Auditor", "Log", "Policy", "read"]
