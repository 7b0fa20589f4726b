"""Simulated machines by the name of a profile, or by a file that describes one.

A file has a Node with its slices, or a node group, such as ``drachma nodegroups learn`` writes; and device classes.
"""

import pathlib
from typing import Any

from drachma.api import codec
from drachma.node.simulation import hardware
from drachma.offline import manifestfiles
from drachma.simulate import nodegroup


def build(profile: str, count: int) -> hardware.Hardware:
    """Return machines of a profile, or copies of the machine in a file.

    Raises:
        errors.InvalidValueError: there is no such profile and no such file, or the file has no machine.
        errors.DecodeError: the file cannot be read.
    """
    if profile in hardware.ALL_PROFILES or not pathlib.Path(profile).exists():
        return hardware.build(profile, count)
    documents: list[dict[str, Any]] = []
    for source in manifestfiles.read_all([profile]):
        if nodegroup.is_node_group(source.api_version, source.kind):
            group = nodegroup.read(source.content)
            documents += map(codec.encode, (group.node, *group.slices))
        else:
            documents.append(source.content)
    for document in documents:
        codec.decode(document)
    return hardware.copies(documents, count)
