"""Names of v1alpha2 as names of devices and attributes.

Both are DNS subdomains in v1alpha2. In v1, attributes are C identifiers and devices DNS labels. The mapping depends
only on the name, so that selectors can be translated without the resources that they select. It is not one to one: a
caller that translates several names must check for collisions.
"""

import hashlib
from typing import Final

from drachma.values import names

_IDENTIFIER_LENGTH: Final = 32
_LABEL_LENGTH: Final = 63
_HASH: Final = 8


def attribute(name: str) -> str:
    """Return the identifier of an attribute: ``a-b`` is ``a_b``, ``a.b`` is ``a__b``, long names end in a hash."""
    identifier = name.replace("-", "_").replace(".", "__")
    if names.c_identifier(identifier):
        identifier = f"_{identifier}"
    return _shortened(identifier, name, limit=_IDENTIFIER_LENGTH, separator="_")


def device(name: str) -> str:
    """Return the label of a device: ``a.b`` is ``a-b``, and a long name ends in a hash."""
    return _shortened(name.replace(".", "-"), name, limit=_LABEL_LENGTH, separator="-")


def _shortened(text: str, name: str, *, limit: int, separator: str) -> str:
    if len(text) <= limit:
        return text
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH]
    return f"{text[: limit - _HASH - 1]}{separator}{digest}"
