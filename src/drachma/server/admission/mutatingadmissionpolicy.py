"""MutatingAdmissionPolicy: expressions change objects by configurations to apply or by JSON patches."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api.types import model
from drachma.cel import conditions, patches
from drachma.server import documents, status
from drachma.server.access import authorization
from drachma.server.admission import expressioninputs, matching, policyparameters
from drachma.server.admission.matching import Place
from drachma.server.admission.policyexpressions import CompiledPolicy
from drachma.server.admission.policyregistry import Binding, Registry
from drachma.server.admission.proposal import Proposal
from drachma.server.admission.reinvocation import Rounds
from drachma.server.admission.request import WriteRequest
from drachma.server.ownership import applyerrors, fieldset, merging
from drachma.server.patch import jsonpatch
from drachma.server.reads.reader import Reader
from drachma.server.surface.strategy import Write
from drachma.values import quotation

_GROUP: Final = "admissionregistration.k8s.io"

Document = dict[str, Any]


class _Mutation(NamedTuple):
    expression: conditions.Expression
    is_configuration: bool


class Policy(CompiledPolicy):
    """Compiled mutating policy."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__(document)
        spec = document["spec"]
        self.is_reinvoked: bool = spec.get("reinvocationPolicy") == "IfNeeded"
        self.mutations: Final = [self._mutation(each) for each in spec.get("mutations") or ()]
        self.names: Final = self.names_with(each.expression for each in self.mutations)

    def _mutation(self, document: Mapping[str, Any]) -> _Mutation:
        is_configuration = document["patchType"] == "ApplyConfiguration"
        field, result = ("jsonPatch", patches.JSON_PATCH_LIST)
        if is_configuration:
            field, result = ("applyConfiguration", patches.OBJECT)
        return _Mutation(self.compile(document[field]["expression"], result), is_configuration)


class _Problem(NamedTuple):
    """Reason why a policy cannot change an object; without a ``reason`` the policy is misconfigured."""

    message: str
    reason: str = ""


class _Invocation(NamedTuple):
    """A policy with one binding and one of its parameters."""

    policy: Policy
    binding: Binding
    version: str
    parameter: Mapping[str, Any] | None

    @property
    def key(self) -> Hashable:
        metadata = (self.parameter or {}).get("metadata") or {}
        return self.policy.name, self.binding.name, metadata.get("namespace"), metadata.get("name")


class _MutationError(errors.RequestError):
    """The result of an expression cannot be used to change an object."""


class MutatingAdmissionPolicy:
    """Upstream's admission plugin of that name."""

    def __init__(self, store: Reader, authoriser: authorization.Authoriser) -> None:
        self._store = store
        self._inputs = expressioninputs.Inputs(store, authoriser)
        self._registry: Final = Registry(
            store,
            policies=f"{_GROUP}/mutatingadmissionpolicies",
            bindings=f"{_GROUP}/mutatingadmissionpolicybindings",
            compile_=Policy,
        )

    def concerns(self, write: Write) -> bool:
        """Return True if a policy may have to be evaluated."""
        return not self._registry.is_empty and write.resource.group_resource not in matching.EXEMPT

    def admit(self, proposal: Proposal, rounds: Rounds) -> None:
        """Change an object by policies; in a second round only by those that asked for reinvocation."""
        request = WriteRequest(proposal)
        place = Place.of(request)
        problems: list[_Problem] = []
        for invocation in list(self._invocations(request, place, problems)):
            if rounds.includes(invocation.key):
                self._invoke(invocation, request, rounds, problems)
        if problems:
            raise _refusal(request, problems)

    def _invocations(self, request: WriteRequest, place: Place, problems: list[_Problem]) -> Iterator[_Invocation]:
        """Yield all invocations for the request as it is before any of them; append problems of others."""
        for policy, bindings in self._registry.covering(place):
            try:
                version = policy.criteria.match(request, place, store=self._store)
                if version is not None and policy.param_kind is not None:
                    policyparameters.resource_of(policy.param_kind, request)
            except (status.StatusError, policyparameters.ConfigurationError) as error:
                problems += _problem(policy, None, f"failed to configure policy: {error}")
                continue
            for binding in bindings if version is not None else ():
                assert version is not None, "only bindings of matching policies are evaluated"
                try:
                    criteria = binding.criteria
                    if criteria is not None and criteria.match(request, place, store=self._store) is None:
                        continue
                    parameters = policyparameters.collect(
                        policy.param_kind, binding.param_ref, request, store=self._store
                    )
                except (status.StatusError, policyparameters.ConfigurationError) as error:
                    problems += _problem(policy, binding, f"failed to configure binding: {error}")
                    continue
                for parameter in parameters:
                    yield _Invocation(policy, binding, version, parameter)

    def _invoke(self, invocation: _Invocation, request: WriteRequest, rounds: Rounds, problems: list[_Problem]) -> None:
        policy, version = invocation.policy, invocation.version
        try:
            if policy.conditions:
                inputs = self._inputs.make(policy.names, request, version, params=invocation.parameter)
                activation = conditions.Activation(inputs, policy.variables, budget=conditions.MATCH_BUDGET)
                if not conditions.match(policy.conditions, activation):
                    return
        except (conditions.UndecidedError, conditions.OutOfBudgetError) as error:
            problems += _problem(policy, invocation.binding, str(error), reason="Invalid")
            return
        before = request.object(version)
        for mutation in policy.mutations:
            try:
                self._mutate(mutation, invocation, request)
            except (_MutationError, conditions.OutOfBudgetError) as error:
                problems += _problem(policy, invocation.binding, str(error), reason="Invalid")
        is_changed = not documents.same(before, request.object(version))
        rounds.note(invocation.key, is_changed=is_changed, again=policy.is_reinvoked)

    def _mutate(self, mutation: _Mutation, invocation: _Invocation, request: WriteRequest) -> None:
        policy, version = invocation.policy, invocation.version
        inputs = self._inputs.make(policy.names, request, version, params=invocation.parameter)
        outcome = conditions.Activation(inputs, policy.variables).evaluate(mutation.expression)
        if outcome.error:
            raise _MutationError(outcome.error)
        current = request.object(version)
        assert current is not None, "a write has an object"
        changed: Document | None
        if mutation.is_configuration:
            changed = _apply_configuration(dict(current), outcome.value, request.write.resource.schema(version))
        else:
            changed = _apply_patch(dict(current), outcome.value)
        if changed is not None and not documents.same(changed, current):
            request.proposal.replace(changed, version)


def _problem(policy: Policy, binding: Binding | None, message: str, *, reason: str = "") -> list[_Problem]:
    if policy.ignores_failure:
        return []
    if binding is None:
        return [_Problem(f"policy {quotation.quote(policy.name)} denied request: {message}", reason)]
    by = f"policy '{policy.name}' with binding '{binding.name}'"
    return [_Problem(f"{by} denied request: {message}", reason)]


def _refusal(request: WriteRequest, problems: list[_Problem]) -> status.StatusError:
    """Return a 403 with all problems."""
    first = problems[0]
    document = request.forbidden(first.message).document
    details = {**document["details"], "causes": [{"message": each.message} for each in problems]}
    reason = first.reason or document["reason"]
    return status.StatusError({**document, "message": first.message, "reason": reason, "details": details})


def _apply_configuration(current: Document, value: Any, schema: model.Object) -> Document:
    """Return the object with a configuration applied; field ownership does not change."""
    _check_types(value)
    configuration = _plain(value)
    configuration.setdefault("apiVersion", current["apiVersion"])
    configuration.setdefault("kind", current["kind"])
    unfit = applyerrors.problems(configuration, schema=schema)
    if unfit:
        details = unfit[0] if len(unfit) == 1 else "\n  ".join(["errors:", *unfit])
        raise _MutationError(f"error applying patch: failed to convert patch object to typed object: {details}")
    atomic = list(_atomics(configuration, schema, ()))
    if atomic:
        listed = ", ".join(atomic)
        detail = f"invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {listed}"
        raise _MutationError(f"error applying patch: {detail}")
    merged: Document = merging.merge(current, configuration, schema=schema)
    return merged


def _apply_patch(current: Document, value: Any) -> Document | None:
    """Return the object after a JSON patch; None if a test operation of the patch fails."""
    operations = []
    for operation in value:
        if "value" in operation:
            _check_types(operation["value"], any_root=True)
        operations.append(_plain(operation))
    try:
        patched = jsonpatch.apply(current, operations)
    except jsonpatch.NotApplicableError as error:
        if str(error).endswith(": test failed"):
            return None
        raise _MutationError(f"JSON Patch: {error}") from None
    if not isinstance(patched, dict):
        raise _MutationError("JSON Patch: the patched object is none")
    return patched


def _check_types(value: Any, *, any_root: bool = False) -> None:
    root = getattr(value, "type_name", patches.OBJECT.name) if any_root else patches.OBJECT.name
    mismatches = patches.mismatches(value, root)
    if mismatches:
        raise _MutationError("type mismatch: " + "\n".join(mismatches))


def _plain(value: Any) -> Document:
    try:
        document: Document = patches.to_json(value)
    except patches.UnfitError as error:
        raise _MutationError(str(error)) from None
    return document


def _atomics(value: Any, kind: model.Type, path: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths of a configuration that would replace whole lists or maps."""
    match kind, value:
        case model.Object(), dict():
            if kind.atomic:
                yield fieldset.text(path)
            for name, part in value.items():
                if name in kind.fields:
                    yield from _atomics(part, kind.fields[name].type, (*path, fieldset.field(name)))
        case model.MapOf(), dict() if kind.atomic:
            yield fieldset.text(path)
        case model.ListOf(), list():
            if kind.keys is None:
                yield fieldset.text(path)
            for position, item in enumerate(value):
                yield from _atomics(item, kind.element, (*path, f"i:{position}"))
