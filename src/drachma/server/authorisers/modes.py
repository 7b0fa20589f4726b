"""Modes of authorisation, by the names of upstream's flag ``--authorization-mode``."""

from collections.abc import Sequence
from typing import Final

from drachma import errors
from drachma.server.access import authorization
from drachma.server.access.authorization import (
    ALLOWED,
    NO_OPINION,
    NO_RULES,
    Attributes,
    Authoriser,
    Decision,
    Opinion,
    Rules,
)
from drachma.server.authorisers import defaultroles
from drachma.server.authorisers.node import NodeAuthoriser
from drachma.server.authorisers.nodegraph import NodeGraph
from drachma.server.authorisers.roles import Roles, ScopePermissions
from drachma.server.reads.reader import Reader
from drachma.server.user import User

ALWAYS_ALLOW: Final = "AlwaysAllow"
NODE: Final = "Node"
ROLE_BASED: Final = "RBAC"
MODES: Final = (ALWAYS_ALLOW, NODE, ROLE_BASED)

MASTERS: Final = "system:masters"
"""Group with unrestricted access in every mode."""

_NODE_ROLE: Final = "system:node"


class Masters:
    """Allows everything to members of ``system:masters``, so that a wrong role cannot lock out all users."""

    name: Final = MASTERS

    def authorise(self, attributes: Attributes) -> Opinion:
        return ALLOWED if MASTERS in attributes.user.groups else NO_OPINION

    def rules(self, user: User, namespace: str) -> Rules:
        return NO_RULES


def check(modes: Sequence[str]) -> None:
    """Check that modes exist, and that there is at least one.

    Raises:
        errors.InvalidValueError: a mode does not exist; the message lists all modes.
    """
    if not modes:
        raise errors.InvalidValueError(f"no authorization mode; there are {', '.join(MODES)}")
    for mode in modes:
        if mode not in MODES:
            raise errors.InvalidValueError(f"authorization mode {mode!r} is none of {', '.join(MODES)}")
    if len(set(modes)) < len(modes):
        raise errors.InvalidValueError(f"an authorization mode comes twice: {','.join(modes)}")


def make(store: Reader, modes: Sequence[str]) -> Authoriser:
    """Return an authoriser that asks those of the modes in their order; raises like :func:`check`."""
    check(modes)
    return authorization.Union((Masters(), *(_make(store, mode) for mode in modes)))


def _make(store: Reader, mode: str) -> Authoriser:
    if mode == NODE:
        return NodeAuthoriser(NodeGraph(store), defaultroles.read().rules(_NODE_ROLE))
    return RBAC(Roles(store)) if mode == ROLE_BASED else authorization.AlwaysAllow()


class RBAC:
    """Upstream's authoriser of that name. It never forbids: without a role that allows an action it has no opinion."""

    name: Final = "rbac"

    def __init__(self, roles: Roles) -> None:
        self._roles = roles

    def authorise(self, attributes: Attributes) -> Opinion:
        scopes = self._roles.find(attributes.user, attributes.namespace)
        for permissions in scopes:
            opinion = _opinion(permissions, attributes)
            if opinion is not None:
                return opinion
        absence = _aggregate(scopes)
        return Opinion(Decision.NO_OPINION, f"RBAC: {absence}") if absence else NO_OPINION

    def rules(self, user: User, namespace: str) -> Rules:
        """Return the rules of all roles that exist."""
        scopes = self._roles.find(user, namespace)
        return Rules(tuple(rule for permissions in scopes for rule in permissions.rules), _aggregate(scopes))


def _opinion(scope: ScopePermissions, attributes: Attributes) -> Opinion | None:
    if attributes.path is not None:
        return scope.permissions.find_path_source(attributes.verb, attributes.path)
    return scope.permissions.find_resource_source(
        attributes.verb,
        attributes.group,
        resource=attributes.resource,
        subresource=attributes.subresource,
        name=attributes.name,
    )


def _aggregate(scopes: Sequence[ScopePermissions]) -> str:
    """Return the missing roles in upstream's form of combined errors."""
    messages = [message for scope in scopes for message in scope.absences]
    return f"[{', '.join(messages)}]" if len(messages) > 1 else "".join(messages)
