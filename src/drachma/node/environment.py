"""The environment of a container: what its pod says, from config maps and secrets, and about the pod itself.

In the kubelet's order: the API server's address, everything that is taken as a whole, then variable by variable,
each of which may refer to those before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drachma.node import downward, expansion
from drachma.node.runningpod import Container, EnvVar, RunningPod
from drachma.node.sources import Keys, Sources
from drachma.values import quantity

_LOWEST, _HIGHEST = " ", "~"
_FORBIDDEN: Final = "="


async def resolve(
    of: RunningPod,
    container: Container,
    sources: Sources,
    *,
    base: Mapping[str, str],
    allocatable: Mapping[str, quantity.Quantity],
) -> dict[str, str]:
    """The variables of a container, beginning with ``base``.

    Raises:
        errors.NodeError: something that it takes them from is not there, or has not what it takes.
    """
    variables = dict(base)
    for source in container.env_from:
        keys: Keys | None = None
        if source.config_map_ref is not None:
            keys = await sources.config_map(source.config_map_ref.name, optional=source.config_map_ref.optional)
        elif source.secret_ref is not None:
            keys = await sources.secret(source.secret_ref.name, optional=source.secret_ref.optional)
        for key, value in sorted(keys.data.items()) if keys is not None else ():
            if is_name(source.prefix + key):
                variables[source.prefix + key] = value.decode(errors="replace")
    for each in container.env:
        value_or_none = await _value(of, container, each, sources, variables, allocatable)
        if value_or_none is not None:
            variables[each.name] = value_or_none
    return variables


def is_name(text: str) -> bool:
    """Whether a key can be the name of a variable; others are left out, as by the kubelet."""
    return bool(text) and all(_LOWEST <= letter <= _HIGHEST and letter != _FORBIDDEN for letter in text)


async def _value(
    of: RunningPod,
    container: Container,
    variable: EnvVar,
    sources: Sources,
    variables: Mapping[str, str],
    allocatable: Mapping[str, quantity.Quantity],
) -> str | None:
    """The value of a variable; None where it comes from something that is not there and need not be."""
    source = variable.value_from
    if source is None:
        return expansion.expand(variable.value, variables)
    if source.field_ref is not None:
        return downward.field(of, source.field_ref.field_path)
    if source.resource_field_ref is not None:
        return downward.resource(of, source.resource_field_ref, container=container.name, allocatable=allocatable)
    reference = source.config_map_key_ref or source.secret_key_ref
    if reference is None:
        return ""
    read = sources.config_map if source.config_map_key_ref is not None else sources.secret
    keys = await read(reference.name, optional=reference.optional)
    if keys is None or (reference.optional and reference.key not in keys.data):
        return None
    return keys.value(reference.key).decode(errors="replace")
