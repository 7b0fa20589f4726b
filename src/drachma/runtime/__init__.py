"""Building blocks of components: clock, informers, work queue, controller loop, lease, event recorder, measures.

Written against :mod:`drachma.client`, so that they work on any API server. Controllers, scheduler and other components
that watch and write objects are built from them.
"""

from drachma.runtime.informer import Informer
from drachma.runtime.informers import Informers
from drachma.runtime.surroundings import Credentials, KeyPair, Surroundings

__all__ = ["Credentials", "Informer", "Informers", "KeyPair", "Surroundings"]
