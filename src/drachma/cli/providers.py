"""Providers of nodes by the options --command and --simulated."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from drachma import errors
from drachma.client import Client
from drachma.simulate.autoscaler import Provider
from drachma.simulate.autoscaler.provider import CommandProvider, SimulatedProvider


def choose(command: str, *, is_simulated: bool) -> Callable[[Client], Provider]:
    """Return the function that makes the provider. Raises errors.DecodeError unless exactly one option is there."""
    if bool(command) == is_simulated:
        raise errors.DecodeError("--command or --simulated: exactly one of them is required, to add and remove nodes")
    if is_simulated:
        return SimulatedProvider
    words = shlex.split(command)
    return lambda _client: CommandProvider(words)
