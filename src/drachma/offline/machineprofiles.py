"""Simulated machines by the name of a profile, or by a file that describes one."""

import pathlib

from drachma.api import codec
from drachma.node.simulation import hardware
from drachma.offline import manifestfiles


def build(profile: str, count: int) -> hardware.Hardware:
    """Return machines of a profile, or copies of the machine in a file.

    Raises:
        errors.InvalidValueError: there is no such profile and no such file, or the file has no machine.
        errors.DecodeError: the file cannot be read.
    """
    if profile in hardware.ALL_PROFILES or not pathlib.Path(profile).exists():
        return hardware.build(profile, count)
    documents = [source.content for source in manifestfiles.read_all([profile])]
    for document in documents:
        codec.decode(document)
    return hardware.copies(documents, count)
