"""Authorisation: questions as attributes, opinions as data, and the protocol of authorisers.

The dispatcher asks about every call, and the HTTP side about every path that is not served as a resource. Reviews,
impersonation and admission ask about other users. Authorisers see only the attributes of a request.
"""

import enum
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from drachma.server import status
from drachma.server.access import policyrules
from drachma.server.access.policyrules import Rule
from drachma.server.lanes import Lanes
from drachma.server.surface import fieldselector
from drachma.server.user import User
from drachma.validation import refusal
from drachma.values import labels as label_values
from drachma.values import quotation

_HARMLESS: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
"""Escapes for HTML, because a browser may show names that users chose."""


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    """User and action of a request. With a ``path`` it is about that path, otherwise about a resource.

    ``name`` and ``namespace`` are empty if the action is about all of them. ``fields`` and ``labels`` are the selectors
    of a list, watch or deletion of a collection. A selector that cannot be parsed is empty.
    """

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    path: str | None = None
    fields: tuple[fieldselector.Term, ...] = ()
    labels: tuple[label_values.Requirement, ...] = ()

    @property
    def full_resource(self) -> str:
        """Resource with its subresource: ``pods/status``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class Decision(enum.Enum):
    """Decision of an authoriser.

    After NO_OPINION the next authoriser is asked; without any opinion the request is refused.
    """

    ALLOWED = "allowed"
    DENIED = "denied"
    NO_OPINION = "no opinion"


class Opinion(NamedTuple):
    """Decision with its reason, which may be empty."""

    decision: Decision
    reason: str = ""

    @property
    def is_allowed(self) -> bool:
        return self.decision is Decision.ALLOWED


ALLOWED: Final = Opinion(Decision.ALLOWED)
NO_OPINION: Final = Opinion(Decision.NO_OPINION)


class Rules(NamedTuple):
    """Permissions of a user as rules.

    ``problem`` describes rules that could not be found; ``is_complete`` is true if no others are missing.
    """

    rules: tuple[Rule, ...] = ()
    problem: str = ""
    is_complete: bool = True


NO_RULES: Final = Rules()


class Authoriser(Protocol):
    """Decides about the permissions of users. ``name`` is upstream's, as in reasons: ``rbac``, ``node``."""

    @property
    def name(self) -> str: ...

    def authorise(self, attributes: Attributes) -> Opinion:
        """Return the opinion on a question; never raises for a question that a client can ask."""

    def rules(self, user: User, namespace: str) -> Rules:
        """Return the permissions of a user in a namespace and in the cluster, as far as rules can express them."""


class AlwaysAllow:
    """Allows everything."""

    name: Final = "alwaysallow"

    def authorise(self, attributes: Attributes) -> Opinion:
        return ALLOWED

    def rules(self, user: User, namespace: str) -> Rules:
        return Rules(policyrules.EVERYTHING)


class Union:
    """Asks authorisers in turn until one has an opinion. Without any, the reason lists the reasons of all."""

    def __init__(self, authorisers: Sequence[Authoriser]) -> None:
        self.name: Final = ",".join(each.name for each in authorisers)
        self._authorisers: Final = tuple(authorisers)

    def authorise(self, attributes: Attributes) -> Opinion:
        reasons: list[str] = []
        for each in self._authorisers:
            opinion = each.authorise(attributes)
            if opinion.decision is not Decision.NO_OPINION:
                return opinion
            if opinion.reason:
                reasons.append(f"{each.name}: {opinion.reason}")
        return Opinion(Decision.NO_OPINION, "\n".join(reasons)) if reasons else NO_OPINION

    def rules(self, user: User, namespace: str) -> Rules:
        parts = [each.rules(user, namespace) for each in self._authorisers]
        problems = dict.fromkeys(part.problem for part in parts if part.problem)
        return Rules(
            tuple(rule for part in parts for rule in part.rules),
            f"[{', '.join(problems)}]" if len(problems) > 1 else "".join(problems),
            all(part.is_complete for part in parts),
        )


def require(authoriser: Authoriser, attributes: Attributes) -> None:
    """Raise a 403 with the user, the action and the reason unless the action is allowed."""
    opinion = authoriser.authorise(attributes)
    if not opinion.is_allowed:
        raise forbidden(attributes, opinion.reason)


def annotations(opinion: Opinion) -> dict[str, str]:
    """Return the audit annotations of an opinion."""
    decision = "allow" if opinion.is_allowed else "forbid"
    return {"authorization.k8s.io/decision": decision, "authorization.k8s.io/reason": opinion.reason}


def forbidden(attributes: Attributes, reason: str = "") -> status.StatusError:
    """Return the 403 for an action that is not allowed."""
    detail = message(attributes).translate(_HARMLESS)
    document = refusal.forbidden(
        f"{detail}: {reason}" if reason else detail,
        group=attributes.group,
        plural=attributes.resource,
        name=attributes.name,
    )
    return status.StatusError(document)


def message(attributes: Attributes) -> str:
    """Return the sentence that says which user cannot do what."""
    start = f"User {quotation.quote(attributes.user.name)} cannot {attributes.verb}"
    if attributes.path is not None:
        return f"{start} path {quotation.quote(attributes.path)}"
    resource, group = quotation.quote(attributes.full_resource), quotation.quote(attributes.group)
    place = (
        f"in the namespace {quotation.quote(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    )
    return f"{start} resource {resource} in API group {group} {place}"


class DistantAuthoriser:
    """An :class:`Authoriser` for use in other threads, because roles and bindings belong to the event loop."""

    def __init__(self, authoriser: Authoriser, lanes: Lanes) -> None:
        self.name: Final = authoriser.name
        self._authoriser: Final = authoriser
        self._on_loop: Final = lanes.call_on_loop

    def authorise(self, attributes: Attributes) -> Opinion:
        return self._on_loop(self._authoriser.authorise, attributes)

    def rules(self, user: User, namespace: str) -> Rules:
        return self._on_loop(self._authoriser.rules, user, namespace)
