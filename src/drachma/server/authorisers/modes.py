"""The modes of authorisation, by the names that upstream's flag ``--authorization-mode`` has for them."""

from collections.abc import Sequence
from typing import Final

from drachma import errors
from drachma.server.access import authorization
from drachma.server.access.authorization import ALLOWED, NO_OPINION, NO_RULES, Attributes, Authoriser, Opinion, Rules
from drachma.server.authorisers import defaultroles
from drachma.server.authorisers.node import NodeAuthoriser
from drachma.server.authorisers.nodegraph import NodeGraph
from drachma.server.authorisers.rbac import RBAC
from drachma.server.authorisers.roles import Roles
from drachma.server.reads.reader import Reader
from drachma.server.user import User

ALWAYS_ALLOW: Final = "AlwaysAllow"
NODE: Final = "Node"
ROLE_BASED: Final = "RBAC"
MODES: Final = (ALWAYS_ALLOW, NODE, ROLE_BASED)

MASTERS: Final = "system:masters"
"""The group of who may do everything, whatever the mode is."""

_NODE_ROLE: Final = "system:node"


class Masters:
    """Lets members of ``system:masters`` do everything, so that nobody is ever locked out by a wrong role."""

    name: Final = MASTERS

    def authorise(self, attributes: Attributes) -> Opinion:
        return ALLOWED if MASTERS in attributes.user.groups else NO_OPINION

    def rules(self, user: User, namespace: str) -> Rules:
        return NO_RULES


def check(modes: Sequence[str]) -> None:
    """Refuses modes that there are not, or none.

    Raises:
        errors.InvalidValueError: it names the mode and those that there are.
    """
    if not modes:
        raise errors.InvalidValueError(f"no authorization mode; there are {', '.join(MODES)}")
    for mode in modes:
        if mode not in MODES:
            raise errors.InvalidValueError(f"authorization mode {mode!r} is none of {', '.join(MODES)}")
    if len(set(modes)) < len(modes):
        raise errors.InvalidValueError(f"an authorization mode comes twice: {','.join(modes)}")


def make(store: Reader, modes: Sequence[str]) -> Authoriser:
    """An authoriser that asks those of some modes, in their order; raises as :func:`check`."""
    check(modes)
    return authorization.Several((Masters(), *(_make(store, mode) for mode in modes)))


def _make(store: Reader, mode: str) -> Authoriser:
    if mode == NODE:
        return NodeAuthoriser(NodeGraph(store), defaultroles.read().rules(_NODE_ROLE))
    return RBAC(Roles(store)) if mode == ROLE_BASED else authorization.AlwaysAllow()
