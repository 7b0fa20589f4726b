"""Schemas that users have written, as OpenAPI documents show them.

Version 3 shows them as they are, with what every resource has. Version 2 knows less: alternatives and nullable values
have no words there, so that those schemas say less than they mean.
"""

from collections.abc import Mapping
from typing import Any, Final

_API_VERSION: Final = {"type": "string", "description": "The group and version that the object is written in."}
_KIND: Final = {"type": "string", "description": "The kind of the object."}
_LATER: Final = ("oneOf", "anyOf", "allOf", "not", "nullable")
"""What version 2 has no words for."""

_DEEPER: Final = ("items", "additionalProperties")


def shown(written: Mapping[str, Any], *, metadata: Mapping[str, Any], is_v3: bool, is_resource: bool = True) -> Any:
    """The definition of objects; ``metadata`` is the reference to what all of them have."""
    result = dict(written)
    if not is_v3:
        result = {name: value for name, value in result.items() if name not in _LATER}
        if written.get("x-kubernetes-preserve-unknown-fields"):
            for name in ("properties", *_DEEPER):
                result.pop(name, None)
        if written.get("nullable"):
            result.pop("type", None)
    properties = result.get("properties")
    if isinstance(properties, Mapping):
        result["properties"] = {
            name: shown(each, metadata=metadata, is_v3=is_v3, is_resource=False) for name, each in properties.items()
        }
    for name in _DEEPER:
        if isinstance(result.get(name), Mapping):
            result[name] = shown(result[name], metadata=metadata, is_v3=is_v3, is_resource=False)
    if is_resource or written.get("x-kubernetes-embedded-resource"):
        envelope = {"apiVersion": _API_VERSION, "kind": _KIND, "metadata": metadata}
        result["properties"] = {**(result.get("properties") or {}), **envelope}
    return result
