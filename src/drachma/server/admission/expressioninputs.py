"""Inputs of expressions in policies and webhooks; only those that an expression can read are built."""

from collections.abc import Mapping
from typing import Any, Final

from drachma import errors
from drachma.cel import admission
from drachma.cel.runtime import authorizers
from drachma.server.access import authorization
from drachma.server.admission import matching
from drachma.server.admission.request import NAMESPACES, Request
from drachma.server.reads.reader import Reader
from drachma.server.surface import fieldselector
from drachma.server.user import User
from drachma.values import label_syntax
from drachma.values import labels as label_values

_NAMESPACE_FIELDS: Final = frozenset(
    (
        *("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"),
        *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers"),
    )
)


class Inputs:
    """Builds the inputs of expressions."""

    def __init__(self, store: Reader, authoriser: authorization.Authoriser) -> None:
        self._store = store
        self._authoriser = authoriser

    def make(
        self, names: frozenset[str], request: Request, version: str, *, params: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the values of the variables among ``names`` for a request."""
        inputs: dict[str, Any] = {}
        if admission.OBJECT in names:
            inputs[admission.OBJECT] = _plain(request.object(version))
        if admission.OLD_OBJECT in names:
            inputs[admission.OLD_OBJECT] = _plain(request.old_object(version))
        if admission.REQUEST in names:
            inputs[admission.REQUEST] = request.document(version)
        if admission.PARAMS in names:
            inputs[admission.PARAMS] = _plain(params)
        if admission.NAMESPACE_OBJECT in names:
            inputs[admission.NAMESPACE_OBJECT] = self._namespace(request)
        if admission.AUTHORIZER in names or admission.REQUEST_RESOURCE in names:
            authorizer = authorizers.Authorizer(_Ask(self._authoriser, request.write.user))
            inputs[admission.AUTHORIZER] = authorizer
            resource = request.write.resource
            inputs[admission.REQUEST_RESOURCE] = authorizers.ResourceCheck(
                authorizer=authorizer,
                group=resource.group,
                resource=resource.plural,
                subresource=request.subresource,
                namespace=request.namespace,
                name=request.name,
            )
        return inputs

    def _namespace(self, request: Request) -> Mapping[str, Any] | None:
        if not request.namespace or request.write.resource.group_resource == NAMESPACES:
            return None
        document = matching.namespace(request.namespace, self._store)
        metadata = {field: value for field, value in document["metadata"].items() if field in _NAMESPACE_FIELDS}
        return {"metadata": metadata, "spec": document.get("spec") or {}, "status": document.get("status") or {}}


def _plain(document: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a document as a plain dict, because strategies may use subclasses that expressions do not know."""
    if document is None or document.__class__ is dict:
        return document
    return dict(document)


class _Ask:
    """Puts the question of an expression to the authoriser."""

    def __init__(self, authoriser: authorization.Authoriser, user: User) -> None:
        self._authoriser = authoriser
        self._user = user

    def __call__(self, question: authorizers.Question) -> authorizers.Decision:
        user = self._user if question.subject is None else _account(question.subject)
        if question.path:
            attributes = authorization.Attributes(user=user, verb=question.verb, path=question.path)
        else:
            attributes = authorization.Attributes(
                user=user,
                verb=question.verb,
                group=question.group,
                version="*",
                resource=question.resource,
                subresource=question.subresource,
                namespace=question.namespace,
                name=question.name,
                fields=_fields(question.field_selector),
                labels=_labels(question.label_selector),
            )
        opinion = self._authoriser.authorise(attributes)
        return authorizers.Decision(allowed=opinion.is_allowed, reason=opinion.reason)


def _account(account: authorizers.ServiceAccount) -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{account.namespace}")
    return User(name=f"system:serviceaccount:{account.namespace}:{account.name}", groups=groups)


def _fields(text: str) -> tuple[fieldselector.Term, ...]:
    """Return the terms of a field selector; none if it cannot be parsed."""
    try:
        return tuple(fieldselector.terms(text)) if text else ()
    except errors.InvalidValueError:
        return ()


def _labels(text: str) -> tuple[label_values.Requirement, ...]:
    try:
        return tuple(label_syntax.parse(text).requirements) if text else ()
    except errors.InvalidValueError:
        return ()
