"""Questions whether somebody may do something: ``kubectl auth can-i``, and what other servers ask."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.server import status
from drachma.server.access.authorization import Attributes, Decision
from drachma.server.calls.call import Call
from drachma.server.kinds.authorization import reviewtypes
from drachma.server.pipeline.answer import Answer
from drachma.server.pipeline.questions import question
from drachma.server.pipeline.services import Services
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


def answer(services: Services, call: Call, asked: dict[str, Any]) -> Answer:
    """Whether a user may do something."""
    _refuse(list(rules.check(asked, is_local=call.target.resource.namespaced)))
    spec = asked["spec"]
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    user = User(name=spec.get("user", ""), groups=tuple(spec.get("groups") or ()), uid=spec.get("uid", ""), extra=extra)
    return _answer(services, call, asked, user=user)


def answer_self(services: Services, call: Call, asked: dict[str, Any]) -> Answer:
    """Whether who asks may do something."""
    _refuse(list(rules.check_self(asked)))
    return _answer(services, call, asked, user=call.user)


def _answer(services: Services, call: Call, asked: dict[str, Any], *, user: User) -> Answer:
    attributes, problem = _attributes(asked["spec"], user)
    opinion = services.authoriser.authorise(attributes)
    answered: dict[str, Any] = {"allowed": opinion.is_allowed}
    if opinion.decision is Decision.DENIED:
        answered["denied"] = True
    if opinion.reason:
        answered["reason"] = opinion.reason
    if problem:
        answered["evaluationError"] = problem
    return question.answer(call, {**asked, "status": answered})


def _attributes(spec: Mapping[str, Any], user: User) -> tuple[Attributes, str]:
    """What is asked about, and what of it cannot be understood; less limits make a wider question."""
    beside, wanted = spec.get("nonResourceAttributes"), spec.get("resourceAttributes")
    if wanted is None:
        assert beside is not None, "one of the two is there"
        return Attributes(user=user, verb=beside.get("verb", ""), path=beside.get("path", "")), ""
    by_fields, by_labels = _fields(wanted.get("fieldSelector")), _labels(wanted.get("labelSelector"))
    attributes = Attributes(
        user=user,
        verb=wanted.get("verb", ""),
        group=wanted.get("group", ""),
        version=wanted.get("version") or "*",
        resource=wanted.get("resource", ""),
        subresource=wanted.get("subresource", ""),
        name=wanted.get("name", ""),
        namespace=wanted.get("namespace", ""),
        fields=by_fields.parts,
        labels=by_labels.parts,
    )
    problems = (by_fields.problem("fieldSelector"), by_labels.problem("labelSelector"))
    return attributes, "; ".join(problem for problem in problems if problem)


class _Limits(NamedTuple):
    """What a question is limited to, as far as that is understood."""

    parts: tuple[Any, ...] = ()
    is_understood: bool = True

    def problem(self, field: str) -> str:
        if self.is_understood:
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
            return _Limits(is_understood=False)
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
        return _Limits(is_understood=False)
    requirements: Sequence[Mapping[str, Any]] = selector.get("requirements") or ()
    parts = tuple(
        labels.Requirement(each["key"], _LABEL_OPERATORS[each["operator"]], each.get("values") or ())
        for each in requirements
        if each.get("operator") in _LABEL_OPERATORS
    )
    return _Limits(parts, len(parts) == len(requirements))


def _refuse(problems: Sequence[FieldError]) -> None:
    """Upstream does not know the kind of a question any more when it looks at it."""
    if problems:
        raise status.invalid("", "", group=reviewtypes.GROUP, causes=problems)
