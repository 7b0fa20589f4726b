"""Reviews: kinds that are questions. Creating one answers it, and nothing is stored."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api import meta
from drachma.server import status
from drachma.server.access import policyrules
from drachma.server.access.authorization import Attributes, Decision
from drachma.server.admission.proposal import Proposal
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.kinds import authorization
from drachma.server.pipeline import creation, identity
from drachma.server.pipeline.answer import Answer, Unstored
from drachma.server.pipeline.services import Services
from drachma.server.presentation import negotiation
from drachma.server.surface import fieldselector
from drachma.server.user import User
from drachma.validation import accessreview as rules
from drachma.validation.fielderror import FieldError
from drachma.values import label_syntax, labels

_LABEL_OPERATORS: Final = {
    "In": labels.Operator.IN,
    "NotIn": labels.Operator.NOT_IN,
    "Exists": labels.Operator.EXISTS,
    "DoesNotExist": labels.Operator.DOES_NOT_EXIST,
}


def read(services: Services, call: Call) -> dict[str, Any]:
    """Return the review in the body of a call, with defaults; a 400 if the body is no review."""
    media_type = negotiation.body_type(call.body.media_type)
    write_options = options.read_write_options(call.query, "CreateOptions")
    write = services.write(call)
    subject = creation.decode(call, write, write_options=write_options, media_type=media_type)
    proposal = Proposal(subject, write, options=write_options, get=services.store.get)
    identity.place(proposal)
    return proposal.document()


def answer_self_subject(services: Services, call: Call, review: dict[str, Any]) -> Answer:
    """Answer a SelfSubjectReview: the user of the call."""
    return _answer(
        call,
        {
            "kind": review["kind"],
            "apiVersion": review["apiVersion"],
            "metadata": {"creationTimestamp": meta.time_text(services.clock())},
            "status": {"userInfo": _user_info(call.user)},
        },
    )


def answer_token(services: Services, call: Call, review: dict[str, Any]) -> Answer:
    """Answer a TokenReview: the user of a token, or the problem with it; a 400 without a token."""
    spec = review.get("spec") or {}
    token = spec.get("token", "")
    if not token:
        raise status.bad_request("token is required for TokenReview in authentication")
    outcome = services.authenticator.review(token, spec.get("audiences") or ())
    result: dict[str, Any] = {"user": {}}
    if outcome.identity is None:
        result["error"] = outcome.problem
    else:
        user, audiences = outcome.identity
        result |= {"authenticated": True, "user": _user_info(user), "audiences": list(audiences)}
    return _answer(call, {**review, "status": result})


def answer_rules(services: Services, call: Call, review: dict[str, Any]) -> Answer:
    """Answer a SelfSubjectRulesReview: the rules of the requester in a namespace. The spec is not repeated."""
    namespace = (review.get("spec") or {}).get("namespace", "")
    if not namespace:
        raise status.bad_request("no namespace on request")
    permissions = services.authoriser.rules(call.user, namespace)
    result = {
        "resourceRules": [policyrules.write(rule) for rule in permissions.rules if rule.resources],
        "nonResourceRules": [policyrules.write(rule) for rule in permissions.rules if rule.paths],
        "incomplete": not permissions.is_complete,
    }
    if permissions.problem:
        result["evaluationError"] = permissions.problem
    head = {"kind": review["kind"], "apiVersion": review["apiVersion"], "metadata": {}}
    return _answer(call, {**head, "spec": {}, "status": result})


def answer_access(services: Services, call: Call, review: dict[str, Any]) -> Answer:
    """Answer whether a user may do something."""
    _refuse(list(rules.check(review, is_local=call.target.resource.namespaced)))
    spec = review["spec"]
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    user = User(name=spec.get("user", ""), groups=tuple(spec.get("groups") or ()), uid=spec.get("uid", ""), extra=extra)
    return _answer_access(services, call, review, user=user)


def answer_self_access(services: Services, call: Call, review: dict[str, Any]) -> Answer:
    """Answer whether the requester may do something."""
    _refuse(list(rules.check_self(review)))
    return _answer_access(services, call, review, user=call.user)


def _answer_access(services: Services, call: Call, review: dict[str, Any], *, user: User) -> Answer:
    attributes, problem = _attributes(review["spec"], user)
    opinion = services.authoriser.authorise(attributes)
    result: dict[str, Any] = {"allowed": opinion.is_allowed}
    if opinion.decision is Decision.DENIED:
        result["denied"] = True
    if opinion.reason:
        result["reason"] = opinion.reason
    if problem:
        result["evaluationError"] = problem
    return _answer(call, {**review, "status": result})


def _attributes(spec: Mapping[str, Any], user: User) -> tuple[Attributes, str]:
    """Return the attributes of the question and the problems of its selectors.

    A selector that cannot be parsed is ignored, which makes the question wider.
    """
    path, resource = spec.get("nonResourceAttributes"), spec.get("resourceAttributes")
    if resource is None:
        assert path is not None, "validation requires one of the two"
        return Attributes(user=user, verb=path.get("verb", ""), path=path.get("path", "")), ""
    by_fields, by_labels = _fields(resource.get("fieldSelector")), _labels(resource.get("labelSelector"))
    attributes = Attributes(
        user=user,
        verb=resource.get("verb", ""),
        group=resource.get("group", ""),
        version=resource.get("version") or "*",
        resource=resource.get("resource", ""),
        subresource=resource.get("subresource", ""),
        name=resource.get("name", ""),
        namespace=resource.get("namespace", ""),
        fields=by_fields.parts,
        labels=by_labels.parts,
    )
    problems = (by_fields.problem("fieldSelector"), by_labels.problem("labelSelector"))
    return attributes, "; ".join(problem for problem in problems if problem)


class _Limits(NamedTuple):
    """Selector of a question, as far as it could be parsed."""

    parts: tuple[Any, ...] = ()
    is_complete: bool = True

    def problem(self, field: str) -> str:
        if self.is_complete:
            return ""
        return f"spec.resourceAttributes.{field} {'partially ' if self.parts else ''}ignored due to parse error"


_NO_LIMITS: Final = _Limits()


def _fields(selector: Mapping[str, Any] | None) -> _Limits:
    if selector is None:
        return _NO_LIMITS
    if selector.get("rawSelector"):
        try:
            return _Limits(tuple(fieldselector.terms(selector["rawSelector"])))
        except errors.InvalidValueError:
            return _Limits(is_complete=False)
    requirements: Sequence[Mapping[str, Any]] = selector.get("requirements") or ()
    terms = tuple(
        fieldselector.Term(each["key"], each["values"][0], is_negated=each["operator"] == "NotIn")
        for each in requirements
        if each.get("operator") in ("In", "NotIn") and len(each.get("values") or ()) == 1
    )
    return _Limits(terms, len(terms) == len(requirements))


def _labels(selector: Mapping[str, Any] | None) -> _Limits:
    if selector is None:
        return _NO_LIMITS
    try:
        if selector.get("rawSelector"):
            return _Limits(label_syntax.parse(selector["rawSelector"]).requirements)
    except errors.InvalidValueError:
        return _Limits(is_complete=False)
    requirements: Sequence[Mapping[str, Any]] = selector.get("requirements") or ()
    parts = tuple(
        labels.Requirement(each["key"], _LABEL_OPERATORS[each["operator"]], each.get("values") or ())
        for each in requirements
        if each.get("operator") in _LABEL_OPERATORS
    )
    return _Limits(parts, len(parts) == len(requirements))


def _refuse(problems: Sequence[FieldError]) -> None:
    """Raise a StatusError for problems. As in upstream, it does not name the kind of the review."""
    if problems:
        raise status.invalid("", "", group=authorization.GROUP, causes=problems)


def _answer(call: Call, document: dict[str, Any]) -> Answer:
    """Return a review in the version of the call."""
    strategy = call.surface.strategy(call.target.resource)
    return Answer(201, Unstored(strategy.serve(document, call.target.version)))


def _user_info(user: User) -> dict[str, Any]:
    """Return a user as a document, without empty fields."""
    content = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in content.items() if value}
