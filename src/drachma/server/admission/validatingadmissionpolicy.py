"""ValidatingAdmissionPolicy: requests that violate a policy are refused, warned about or audited.

A policy is evaluated for each matching binding and each of its parameters. All policies are evaluated, and the client
gets the first refusal.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from drachma.cel import conditions, types
from drachma.server import status
from drachma.server.access import authorization
from drachma.server.admission import expressioninputs, matching, policyparameters
from drachma.server.admission.matching import Place
from drachma.server.admission.policyexpressions import CompiledPolicy
from drachma.server.admission.policyregistry import Binding, Registry
from drachma.server.admission.proposal import Proposal, Removal
from drachma.server.admission.request import RemovalRequest, Request, WriteRequest
from drachma.server.reads.reader import Reader
from drachma.server.surface.strategy import Write

_GROUP: Final = "admissionregistration.k8s.io"
_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}
_LONGEST_MESSAGE: Final = 5 * 1024
_LONGEST_ANNOTATION: Final = 10 * 1024
_MOST_FAILURES: Final = 50
_FAILURES_KEY: Final = "validation.policy.admission.k8s.io/validation_failure"

_encode = msgspec.json.Encoder().encode


class _Validation(NamedTuple):
    expression: conditions.Expression
    message: str
    computed: conditions.Expression | None
    reason: str


class Policy(CompiledPolicy):
    """Compiled validating policy."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__(document)
        spec = document["spec"]
        self.validations: Final = [self._validation(each) for each in spec.get("validations") or ()]
        self.annotations: Final = [
            (each["key"], self.compile(each["valueExpression"], types.STRING, types.NULL))
            for each in spec.get("auditAnnotations") or ()
        ]
        self.names: Final = self.names_with(
            [
                *(each.expression for each in self.validations),
                *(each.computed for each in self.validations if each.computed is not None),
                *(expression for _, expression in self.annotations),
            ]
        )

    def _validation(self, document: Mapping[str, Any]) -> _Validation:
        text = document.get("messageExpression")
        return _Validation(
            self.compile(document["expression"], types.BOOL),
            document.get("message", ""),
            self.compile(text, types.STRING, authorizer=False) if text else None,
            document.get("reason") or "Invalid",
        )


class _Denial(NamedTuple):
    """A failed validation with its ``position``."""

    message: str
    reason: str = "Invalid"
    position: int = 0


class _Verdict(NamedTuple):
    """Result of evaluating a policy for one parameter."""

    denials: Sequence[_Denial] = ()
    annotations: Mapping[str, str] = {}
    failures: Sequence[str] = ()
    """Errors of audit annotations, which deny the request whatever the binding's actions are."""


class ValidatingAdmissionPolicy:
    """Upstream's admission plugin of that name."""

    def __init__(self, store: Reader, authoriser: authorization.Authoriser) -> None:
        self._store = store
        self._inputs = expressioninputs.Inputs(store, authoriser)
        self._registry: Final = Registry(
            store,
            policies=f"{_GROUP}/validatingadmissionpolicies",
            bindings=f"{_GROUP}/validatingadmissionpolicybindings",
            compile_=Policy,
        )

    def concerns(self, write: Write) -> bool:
        """Return True if a policy may refuse the object of a write."""
        return not self._registry.is_empty and write.resource.group_resource not in matching.EXEMPT

    def validate(self, proposal: Proposal) -> None:
        """Refuse an object that violates a policy."""
        if self.concerns(proposal.write):
            self._validate(WriteRequest(proposal))

    def validate_removal(self, removal: Removal) -> None:
        """Refuse a deletion that violates a policy."""
        if self.concerns(removal.write):
            self._validate(RemovalRequest(removal))

    def _validate(self, request: Request) -> None:
        place = Place.of(request)
        hooks = self._registry.covering(place)
        if not hooks:
            return
        refusals: list[tuple[str, str]] = []
        failures: list[dict[str, Any]] = []
        for policy, bindings in hooks:
            try:
                version = policy.criteria.match(request, place, store=self._store)
                if version is not None and policy.param_kind is not None:
                    policyparameters.resource_of(policy.param_kind, request)
            except (status.StatusError, policyparameters.ConfigurationError) as error:
                if not policy.ignores_failure:
                    refusals.append((_denial_message(policy, None, f"failed to configure policy: {error}"), "Invalid"))
                continue
            if version is not None:
                annotations: dict[str, list[str]] = {}
                for binding in bindings:
                    refusals += self._enforce(policy, binding, request, version, place, annotations, failures)
                for key, texts in annotations.items():
                    request.write.annotations[f"{policy.name}/{key}"] = ", ".join(dict.fromkeys(texts))
        if failures:
            request.write.annotations[_FAILURES_KEY] = _encode(failures[:_MOST_FAILURES]).decode()
        if refusals:
            raise _refusal(request, *refusals[0])

    def _enforce(
        self,
        policy: Policy,
        binding: Binding,
        request: Request,
        version: str,
        place: Place,
        annotations: dict[str, list[str]],
        failures: list[dict[str, Any]],
    ) -> Iterator[tuple[str, str]]:
        """Yield the refusals of a policy under one binding with their reasons; collect audit annotations."""
        try:
            criteria = binding.criteria
            if criteria is not None and criteria.match(request, place, store=self._store) is None:
                return
            params = policyparameters.collect(policy.param_kind, binding.param_ref, request, store=self._store)
        except (status.StatusError, policyparameters.ConfigurationError) as error:
            if not policy.ignores_failure:
                yield _denial_message(policy, binding, f"failed to configure binding: {error}"), "Invalid"
            return
        for each in params:
            inputs = self._inputs.make(policy.names, request, version, params=each)
            verdict = _evaluate(policy, inputs)
            for denial in verdict.denials:
                yield from _act(policy, binding, denial, request.write, failures)
            for key, text in verdict.annotations.items():
                annotations.setdefault(key, []).append(text[:_LONGEST_ANNOTATION])
            for failure in verdict.failures:
                yield _denial_message(policy, binding, failure), "Invalid"


def _act(
    policy: Policy, binding: Binding, denial: _Denial, write: Write, failures: list[dict[str, Any]]
) -> Iterator[tuple[str, str]]:
    for action in binding.actions:
        if action == "Deny":
            yield _denial_message(policy, binding, denial.message), denial.reason
        elif action == "Warn":
            title = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
            write.warn(f"Validation failed for {title}: {denial.message}")
        elif action == "Audit":
            failures.append(
                {
                    "message": denial.message,
                    "policy": policy.name,
                    "binding": binding.name,
                    "expressionIndex": denial.position,
                    "validationActions": binding.actions,
                }
            )


def _denial_message(policy: Policy, binding: Binding | None, message: str) -> str:
    by = "" if binding is None else f" with binding '{binding.name}'"
    return f"ValidatingAdmissionPolicy '{policy.name}'{by} denied request: {message}"


def _refusal(request: Request, message: str, reason: str) -> status.StatusError:
    document = request.forbidden(message).document
    details = {**document["details"], "causes": [{"message": message}]}
    return status.StatusError({**document, "reason": reason, "details": details, "code": _CODES[reason]})


def _evaluate(policy: Policy, inputs: Mapping[str, Any]) -> _Verdict:
    try:
        if policy.conditions:
            activation = conditions.Activation(inputs, policy.variables, budget=conditions.MATCH_BUDGET)
            if not conditions.match(policy.conditions, activation):
                return _Verdict()
        denials = _denials(policy, inputs)
        annotations, failures = _annotations(policy, inputs)
    except (conditions.OutOfBudgetError, conditions.UndecidedError) as error:
        return _Verdict() if policy.ignores_failure else _Verdict([_Denial(str(error))])
    return _Verdict(denials, annotations, failures)


def _denials(policy: Policy, inputs: Mapping[str, Any]) -> list[_Denial]:
    activation = conditions.Activation(inputs, policy.variables)
    outcomes = [activation.evaluate(each.expression) for each in policy.validations]
    if all(outcome.value is True for outcome in outcomes):
        return []
    # Differs from upstream: messages are computed only if they are shown.
    messages = conditions.Activation(inputs, policy.variables, budget=activation.budget)
    denials = []
    for position, (validation, outcome) in enumerate(zip(policy.validations, outcomes, strict=True)):
        if outcome.error:
            if not policy.ignores_failure:
                denials.append(_Denial(outcome.error, position=position))
        elif outcome.value is not True:
            try:
                denials.append(_Denial(_message(validation, messages), validation.reason, position))
            except conditions.OutOfBudgetError as error:
                if not policy.ignores_failure:
                    denials.append(_Denial(f"failed messageExpression: {error}", position=position))
    return denials


def _message(validation: _Validation, activation: conditions.Activation) -> str:
    message = ""
    if validation.computed is not None:
        computed = activation.evaluate(validation.computed).value
        if isinstance(computed, str):
            message = computed.strip()
            if len(message.encode()) > _LONGEST_MESSAGE or "\n" in message:
                message = ""
    return message or validation.message.strip() or f"failed expression: {validation.expression.text.strip()}"


def _annotations(policy: Policy, inputs: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    texts: dict[str, str] = {}
    failures: list[str] = []
    if not policy.annotations:
        return texts, failures
    activation = conditions.Activation(inputs, policy.variables)
    for key, expression in policy.annotations:
        outcome = activation.evaluate(expression)
        if outcome.error:
            if not policy.ignores_failure:
                failures.append(outcome.error)
        elif isinstance(outcome.value, str) and outcome.value.strip():
            texts[key] = outcome.value.strip()
    return texts, failures
