"""Asking an authoriser from a lane: roles and who has them belong to the event loop."""

from typing import Final

from drachma.server.access.authorization import Attributes, Authoriser, Opinion, Rules
from drachma.server.lanes import Lanes
from drachma.server.user import User


class DistantAuthoriser:
    """An :class:`Authoriser` for use in lanes and on the loop."""

    def __init__(self, authoriser: Authoriser, lanes: Lanes) -> None:
        self.name: Final = authoriser.name
        self._authoriser: Final = authoriser
        self._on_loop: Final = lanes.on_loop

    def authorise(self, attributes: Attributes) -> Opinion:
        return self._on_loop(self._authoriser.authorise, attributes)

    def rules(self, user: User, namespace: str) -> Rules:
        return self._on_loop(self._authoriser.rules, user, namespace)
