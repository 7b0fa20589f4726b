"""RBAC: users may do what the roles that they are bound to allow."""

from typing import Final

from drachma.server.access.authorization import NO_OPINION, Attributes, Decision, Opinion, Rules
from drachma.server.access.policyrules import Rule
from drachma.server.authorisers.roles import Roles
from drachma.server.user import User
from drachma.store import record


class RBAC:
    """Upstream's authorizer of that name. It never forbids: what no role allows is without an opinion."""

    name: Final = "rbac"

    def __init__(self, roles: Roles) -> None:
        self._roles = roles

    def authorise(self, attributes: Attributes) -> Opinion:
        absences: dict[str, None] = {}
        verb, path = attributes.verb, attributes.path
        for grant, role in self._roles.of(attributes.user, attributes.namespace):
            if role is None:
                absences[grant.absence] = None
            elif path is not None:
                if role.permissions.allow_path(verb, path):
                    return grant.opinion
            elif role.permissions.allow(
                verb,
                attributes.group,
                resource=attributes.resource,
                subresource=attributes.subresource,
                name=attributes.name,
            ):
                return grant.opinion
        return Opinion(Decision.NO_OPINION, f"RBAC: {_aggregate(absences)}") if absences else NO_OPINION

    def rules(self, user: User, namespace: str) -> Rules:
        """The rules of all roles that are there."""
        rules: list[Rule] = []
        absences: dict[str, None] = {}
        bindings: set[record.Key] = set()
        for grant, role in self._roles.of(user, namespace):
            if grant.binding in bindings:
                continue
            bindings.add(grant.binding)
            if role is None:
                absences[grant.absence] = None
            else:
                rules.extend(role.rules)
        return Rules(tuple(rules), _aggregate(absences))


def _aggregate(messages: dict[str, None]) -> str:
    """Several messages as upstream puts them together."""
    return f"[{', '.join(messages)}]" if len(messages) > 1 else "".join(messages)
