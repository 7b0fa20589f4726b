"""May this user do that: the question, its answer as data, and whom it is put to.

The dispatcher asks it of every call, the HTTP door of every path that is beside the resources or not served, and
reviews, impersonation and admission ask it for others. Whoever answers looks at attributes and nothing else of a
request.
"""

import enum
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from drachma.server import status
from drachma.server.access import policyrules
from drachma.server.access.policyrules import Rule
from drachma.server.surface import fieldselector
from drachma.server.user import User
from drachma.validation import refusal
from drachma.values import labels as label_values
from drachma.values import quotation

_HARMLESS: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
"""What users name may end up in a browser."""


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants to do what. With a ``path`` it is about that, else about a resource.

    ``name`` and ``namespace`` are empty where it is about all of them. ``fields`` and ``labels`` are what a list, a
    watch or the deletion of a collection is limited to; what cannot be parsed limits nothing.
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
        """The resource with its subresource: ``pods/status``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class Decision(enum.Enum):
    """What an authoriser has to say; without an opinion, the next one is asked, and nobody's leave is a refusal."""

    ALLOWED = "allowed"
    DENIED = "denied"
    NO_OPINION = "no opinion"


class Opinion(NamedTuple):
    """An answer and the reason for it, which may be empty."""

    decision: Decision
    reason: str = ""

    @property
    def is_allowed(self) -> bool:
        return self.decision is Decision.ALLOWED


ALLOWED: Final = Opinion(Decision.ALLOWED)
NO_OPINION: Final = Opinion(Decision.NO_OPINION)


class Rules(NamedTuple):
    """What a user may do, as rules; ``problem`` says what may be missing from them, and ``is_complete`` that nothing
    but that is.
    """

    rules: tuple[Rule, ...] = ()
    problem: str = ""
    is_complete: bool = True


NO_RULES: Final = Rules()


class Authoriser(Protocol):
    """Says what users may do. ``name`` is upstream's, in the case that reasons have it: ``rbac``, ``node``."""

    @property
    def name(self) -> str: ...

    def authorise(self, attributes: Attributes) -> Opinion:
        """The opinion on one question; never raises for what a client can ask."""

    def rules(self, user: User, namespace: str) -> Rules:
        """What a user may do in a namespace and beside all namespaces, as far as rules can say it."""


class AlwaysAllow:
    """Lets everybody do everything."""

    name: Final = "alwaysallow"

    def authorise(self, attributes: Attributes) -> Opinion:
        return ALLOWED

    def rules(self, user: User, namespace: str) -> Rules:
        return Rules(policyrules.EVERYTHING)


class Several:
    """Asks one after the other until one has an opinion; without any, the reasons of all are the reason."""

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
    """Nothing where it is allowed, else a 403 that says who cannot do what, and why."""
    enforce(authoriser.authorise(attributes), attributes)


def enforce(opinion: Opinion, attributes: Attributes) -> None:
    """The same where the opinion is there already."""
    if not opinion.is_allowed:
        raise forbidden(attributes, opinion.reason)


def annotations(opinion: Opinion) -> dict[str, str]:
    """What an audit log says of an opinion."""
    decision = "allow" if opinion.is_allowed else "forbid"
    return {"authorization.k8s.io/decision": decision, "authorization.k8s.io/reason": opinion.reason}


def forbidden(attributes: Attributes, reason: str = "") -> status.StatusError:
    """The 403 for what is not allowed."""
    detail = message(attributes).translate(_HARMLESS)
    document = refusal.forbidden(
        f"{detail}: {reason}" if reason else detail,
        group=attributes.group,
        plural=attributes.resource,
        name=attributes.name,
    )
    return status.StatusError(document)


def message(attributes: Attributes) -> str:
    """Who cannot do what, as a sentence."""
    start = f"User {quotation.quote(attributes.user.name)} cannot {attributes.verb}"
    if attributes.path is not None:
        return f"{start} path {quotation.quote(attributes.path)}"
    resource, group = quotation.quote(attributes.full_resource), quotation.quote(attributes.group)
    place = (
        f"in the namespace {quotation.quote(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    )
    return f"{start} resource {resource} in API group {group} {place}"
