"""What a field means: what its type says, or what fields of that name mean in all types, or what it consists of."""

from collections.abc import Mapping
from typing import Final

from drachma.server.schema import model

_EVERYWHERE: Final[Mapping[str, str]] = {
    "apiVersion": "The version of the API that the object is written in, as group/version.",
    "kind": "The kind of the object.",
    "metadata": "Name, namespace, labels and everything else that objects of all kinds have.",
    "spec": "What is wanted.",
    "status": "What is.",
    "conditions": "Observed aspects of the state, one of each type.",
    "items": "The objects of the list.",
}


def of_field(field: model.Field) -> str:
    """What a field means; failing a text of its own, what its type is."""
    own = field.description or _EVERYWHERE.get(field.name)
    if own:
        return own
    inner: model.Type = field.type
    while isinstance(inner, model.ListOf | model.MapOf):
        inner = inner.element
    return inner.description if isinstance(inner, model.Object) else ""
