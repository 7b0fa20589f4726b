"""The description of every type and field, from our structs' docstrings and ``server.surface.openapi.fieldtexts``.

Public: ``of_type(schema)``, ``of_field(owner, field)``; both give an empty text where there is none.
"""

import functools
import inspect
from collections.abc import Mapping

from drachma.api import (
    deviceclass,
    devices,
    devicetaintrule,
    event,
    job,
    lease,
    meta,
    namespace,
    node,
    nodeallocatable,
    nodeselector,
    pod,
    resourceclaim,
    resourceclaimtemplate,
    resourcequota,
    resourceslice,
    struct,
    v1beta1,
)
from drachma.server.schema import model
from drachma.server.surface.openapi import fieldtexts

_MODULES = (
    v1beta1,
    deviceclass,
    devices,
    devicetaintrule,
    event,
    job,
    lease,
    meta,
    namespace,
    node,
    nodeallocatable,
    nodeselector,
    pod,
    resourceclaim,
    resourceclaimtemplate,
    resourcequota,
    resourceslice,
)


def of_type(schema: model.Object) -> str:
    """What a type is."""
    qualified = schema.definition.removeprefix("io.k8s.api.")
    written = _written()
    return written.get(qualified) or written.get(schema.name) or _docstrings().get(schema.name, "")


def of_field(owner: model.Object, field: model.Field) -> str:
    """What a field of a type means; failing a text of its own, what its type is."""
    texts = _written()
    own = texts.get(f"{owner.name}.{field.name}") or texts.get(f"*.{field.name}")
    if own:
        return own
    inner: model.Type = field.type
    while isinstance(inner, model.ListOf | model.MapOf):
        inner = inner.element
    return of_type(inner) if isinstance(inner, model.Object) else ""


@functools.cache
def _written() -> Mapping[str, str]:
    lines = (line.partition(": ") for line in fieldtexts.TEXTS.splitlines())
    return {name: text for name, _, text in lines}


@functools.cache
def _docstrings() -> Mapping[str, str]:
    """The first paragraph of every struct's docstring, without the marks that are only for people who read code."""
    texts: dict[str, str] = {}
    for module in _MODULES:
        for name, shape in inspect.getmembers(module, inspect.isclass):
            if issubclass(shape, struct.Struct) and shape.__module__ == module.__name__ and shape.__doc__:
                paragraph = inspect.cleandoc(shape.__doc__).partition("\n\n")[0]
                texts[name] = " ".join(paragraph.replace("``", "").split())
    return texts
