"""What every component is made of: clock, informers, work queue, controller loop, lease, event recorder, measures.

Written against :mod:`drachma.client`, so that it works on any API server; controllers, scheduler and whatever else
watches and writes objects are built from it.
"""

from drachma.runtime.informer import Informer
from drachma.runtime.informers import Informers
from drachma.runtime.surroundings import Credentials, KeyPair, Surroundings

__all__ = ["Credentials", "Informer", "Informers", "KeyPair", "Surroundings"]
