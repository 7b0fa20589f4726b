"""Names of v1alpha2 as names of devices and attributes.

Both are DNS subdomains in v1alpha2. Attributes of devices have C identifiers, devices DNS labels. The mapping depends
on nothing but the name, so that selectors can be translated without the resources that they select. It is not one to
one: who translates several names together looks out for two that become the same.
"""

import hashlib
from typing import Final

from drachma.values import names

_IDENTIFIER_LENGTH: Final = 32
_LABEL_LENGTH: Final = 63
_HASH: Final = 8


def attribute(name: str) -> str:
    """The identifier of an attribute: ``a-b`` is ``a_b``, ``a.b`` is ``a__b``, and what is too long ends in a hash."""
    identifier = name.replace("-", "_").replace(".", "__")
    if names.c_identifier(identifier):
        identifier = f"_{identifier}"
    return _shortened(identifier, name, limit=_IDENTIFIER_LENGTH, separator="_")


def device(name: str) -> str:
    """The label of a device: ``a.b`` is ``a-b``, and what is too long ends in a hash."""
    return _shortened(name.replace(".", "-"), name, limit=_LABEL_LENGTH, separator="-")


def _shortened(text: str, name: str, *, limit: int, separator: str) -> str:
    if len(text) <= limit:
        return text
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH]
    return f"{text[: limit - _HASH - 1]}{separator}{digest}"
