"""Rules for ResourcePoolStatusRequest."""

from typing import Final

from drachma.validation import constraints, kindrules, rulenotation
from drachma.values import names

_driver_name: Final = constraints.text(names.dns1123_subdomain_caseless)
_pool_name: Final = constraints.text(names.resource_pool_name)


_TYPES: Final = rulenotation.load("resourcepoolstatusrequest", globals())
KINDS: Final = kindrules.read(_TYPES)
