"""RBAC: users may do what the roles that they are bound to allow."""

from collections.abc import Sequence
from typing import Final

from drachma.server.access.authorization import NO_OPINION, Attributes, Decision, Opinion, Rules
from drachma.server.authorisers.roles import Held, Roles
from drachma.server.user import User


class RBAC:
    """Upstream's authorizer of that name. It never forbids: what no role allows is without an opinion."""

    name: Final = "rbac"

    def __init__(self, roles: Roles) -> None:
        self._roles = roles

    def authorise(self, attributes: Attributes) -> Opinion:
        several = self._roles.of(attributes.user, attributes.namespace)
        for held in several:
            opinion = _opinion(held, attributes)
            if opinion is not None:
                return opinion
        absence = _aggregate(several)
        return Opinion(Decision.NO_OPINION, f"RBAC: {absence}") if absence else NO_OPINION

    def rules(self, user: User, namespace: str) -> Rules:
        """The rules of all roles that are there."""
        several = self._roles.of(user, namespace)
        return Rules(tuple(rule for held in several for rule in held.rules), _aggregate(several))


def _opinion(held: Held, attributes: Attributes) -> Opinion | None:
    if attributes.path is not None:
        return held.permissions.allowing_path(attributes.verb, attributes.path)
    return held.permissions.allowing(
        attributes.verb,
        attributes.group,
        resource=attributes.resource,
        subresource=attributes.subresource,
        name=attributes.name,
    )


def _aggregate(several: Sequence[Held]) -> str:
    """Which roles are not there, as upstream puts messages together."""
    messages = [message for held in several for message in held.absences]
    return f"[{', '.join(messages)}]" if len(messages) > 1 else "".join(messages)
