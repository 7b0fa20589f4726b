"""Building blocks of components: clock, informers, work queue, controller loop, lease, event recorder, measures.

Written against :mod:`drachma.client`, so that they work on any API server. Controllers, scheduler and other components
that watch and write objects are built from them.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from drachma.runtime.informer import Informer
    from drachma.runtime.informers import Informers
    from drachma.runtime.surroundings import Credentials, KeyPair, Surroundings

__all__ = ["Credentials", "Informer", "Informers", "KeyPair", "Surroundings"]

_MODULES: Final = {"Informer": "informer", "Informers": "informers"}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: commands that read once need the clock only."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES.get(name, "surroundings")
    return getattr(importlib.import_module(f"drachma.runtime.{module}"), name)
