"""Environment of a container: variables from its pod, from ConfigMaps and Secrets, and from the downward API.

The order is the kubelet's: the address of the API server, then ``envFrom``, then ``env``, where each variable may refer
to the variables before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from drachma.node.podview.containers import Container, EnvVar
from drachma.node.podview.pod import PodView
from drachma.node.setup import downward
from drachma.node.setup.sources import Keys, Sources
from drachma.values import quantity

_LOWEST, _HIGHEST = " ", "~"
_FORBIDDEN: Final = "="

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")


async def resolve(
    pod: PodView,
    container: Container,
    sources: Sources,
    *,
    base: Mapping[str, str],
    allocatable: Mapping[str, quantity.Quantity],
) -> dict[str, str]:
    """Return the variables of a container, starting with ``base``.

    Raises:
        errors.NodeError: a source or a key in it does not exist.
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
        value_or_none = await _value(pod, container, each, sources, variables, allocatable)
        if value_or_none is not None:
            variables[each.name] = value_or_none
    return variables


def is_name(text: str) -> bool:
    """Return True if a key can be the name of a variable. The kubelet leaves out other keys too."""
    return bool(text) and all(_LOWEST <= letter <= _HIGHEST and letter != _FORBIDDEN for letter in text)


async def _value(
    pod: PodView,
    container: Container,
    variable: EnvVar,
    sources: Sources,
    variables: Mapping[str, str],
    allocatable: Mapping[str, quantity.Quantity],
) -> str | None:
    """Return the value of a variable, or None if its optional source does not exist."""
    source = variable.value_from
    if source is None:
        return expand(variable.value, variables)
    if source.field_ref is not None:
        return downward.field(pod, source.field_ref.field_path)
    if source.resource_field_ref is not None:
        return downward.resource(pod, source.resource_field_ref, container=container.name, allocatable=allocatable)
    reference = source.config_map_key_ref or source.secret_key_ref
    if reference is None:
        return ""
    read_keys = sources.config_map if source.config_map_key_ref is not None else sources.secret
    keys = await read_keys(reference.name, optional=reference.optional)
    if keys is None or (reference.optional and reference.key not in keys.data):
        return None
    return keys.value(reference.key).decode(errors="replace")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace references to variables in a text: ``$(NAME)``, and ``$$`` for a dollar. Unknown references stay."""

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "$"
        return variables.get(name, match[0])

    return _REFERENCE.sub(replace, text)
