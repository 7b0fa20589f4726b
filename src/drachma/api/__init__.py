"""The API kinds: one module per kind, with their codec, defaults and conversion between versions.

Objects are immutable and in their v1 form; other versions exist only while bytes are read or written. Start at
:mod:`drachma.api.codec` (bytes and documents to objects and back) or :mod:`drachma.api.manifest` (whole files).

The names in ``__all__`` are public and load when they are used. The product imports the modules themselves.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from drachma.api.codec import decode, decode_json, encode, encode_json
    from drachma.api.deviceclass import DeviceClass
    from drachma.api.devicetaintrule import DeviceTaintRule
    from drachma.api.node import Node
    from drachma.api.pod import Pod
    from drachma.api.resourceclaim import ResourceClaim
    from drachma.api.resourceclaimtemplate import ResourceClaimTemplate
    from drachma.api.resourceslice import ResourceSlice

__all__ = [
    "DeviceClass",
    "DeviceTaintRule",
    "Node",
    "Pod",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
    "decode",
    "decode_json",
    "encode",
    "encode_json",
]

_FUNCTIONS: Final = frozenset({"decode", "decode_json", "encode", "encode_json"})


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "codec" if name in _FUNCTIONS else name.lower()
    return getattr(importlib.import_module(f"drachma.api.{module}"), name)
