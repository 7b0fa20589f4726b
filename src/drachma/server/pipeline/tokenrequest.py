"""Token requests: tokens for service accounts, bound to a pod, a secret, a node, or only to the account."""

from datetime import timedelta
from typing import Any, Final

import msgspec

from drachma.api import meta, struct
from drachma.server import objectmeta, status
from drachma.server.access.accounts import Reference
from drachma.server.access.accounttokens import Binding
from drachma.server.admission import namespacelifecycle, noderestriction
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.kinds.core import configuration, node, pod
from drachma.server.kinds.core import namespace as namespace_kind
from drachma.server.pipeline import podcalls
from drachma.server.pipeline.answer import Answer, Verbatim
from drachma.server.pipeline.services import Services
from drachma.server.presentation import negotiation
from drachma.server.surface import resources
from drachma.store import record
from drachma.validation import fielderror, refusal
from drachma.validation.path import METADATA, SPEC
from drachma.values import quotation

HOUR: Final = 60 * 60
SHORTEST: Final = 10 * 60
LONGEST: Final = 1 << 32
POD_SECONDS: Final = HOUR + 7
"""Lifetime that kubelets request for pods. Such tokens live longer, because some programs read them only once."""

EXTENDED: Final = 365 * 24 * HOUR

_GROUP: Final = "authentication.k8s.io"
_KIND: Final = "TokenRequest"
_BOUND: Final[dict[str, resources.Resource]] = {"Pod": pod.KIND, "Secret": configuration.SECRET, "Node": node.KIND}
"""Kinds that a token can be bound to, all of the core group."""


class _Reference(struct.Struct, frozen=True, kw_only=True):
    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class _Spec(struct.Struct, frozen=True, kw_only=True):
    audiences: tuple[str, ...] = ()
    expiration_seconds: int = HOUR
    bound_object_ref: _Reference | None = None


class _TokenRequest(struct.Struct, frozen=True, kw_only=True):
    metadata: meta.ObjectMeta = meta.ABSENT_META
    spec: _Spec = _Spec()


async def create(services: Services, call: Call) -> Answer:
    """Issue a token. The object that it is bound to must exist and have the expected uid."""
    media_type = negotiation.body_type(call.body.media_type)
    write_options = options.read_write_options(call.query, "CreateOptions")
    request = podcalls.read(call, _TokenRequest, write_options, media_type=media_type)
    _check_namespace(services, call)
    _check_node(services, call, request.spec)
    _check_names(request.metadata, call)
    account = services.get(call.target).value["metadata"]
    if request.metadata.uid and request.metadata.uid != account["uid"]:
        detail = (
            f"the UID in the token request ({request.metadata.uid}) does not match the UID of the service account "
            f"({account['uid']})"
        )
        raise _conflict(_KIND, call.target.name, group=_GROUP, detail=detail)
    spec = request.spec
    _check(spec)
    holder = Reference(account["name"], account["uid"])
    unbound = Binding(namespace=account["namespace"], serviceaccount=holder)
    return _answer(services, spec, _bind(services, call, spec, unbound=unbound))


def _answer(services: Services, spec: _Spec, binding: Binding) -> Answer:
    issuer, now = services.issuer, services.clock()
    audiences, seconds = spec.audiences or issuer.audiences, spec.expiration_seconds
    lifetime = seconds
    if binding.pod is not None and seconds == POD_SECONDS and set(audiences) <= set(issuer.audiences):
        warn_after = int(now.timestamp()) + seconds
        binding = msgspec.structs.replace(binding, warnafter=warn_after)
        lifetime = EXTENDED
    token = issuer.issue(binding, audiences=audiences, seconds=lifetime, token_id=objectmeta.generate_uid(services.rng))
    account = binding.serviceaccount
    document = {
        "kind": _KIND,
        "apiVersion": f"{_GROUP}/v1",
        "metadata": {
            "name": account.name,
            "namespace": binding.namespace,
            "uid": account.uid,
            "creationTimestamp": meta.time_text(now),
        },
        "spec": {
            "audiences": list(audiences),
            "expirationSeconds": seconds,
            "boundObjectRef": _reference(spec.bound_object_ref),
        },
        "status": {"token": token, "expirationTimestamp": meta.time_text(now + timedelta(seconds=seconds))},
    }
    return Answer(201, Verbatim(document))


def _check_namespace(services: Services, call: Call) -> None:
    """Require the namespace to exist, as NamespaceLifecycle does for objects that are stored."""
    namespace = call.target.namespace or ""
    if services.store.get(record.Key(namespacelifecycle.NAMESPACES, "", namespace)) is None:
        raise status.not_found(namespace_kind.KIND, namespace)


def _check_node(services: Services, call: Call, spec: _Spec) -> None:
    """Let nodes request tokens only for pods that run on them, as NodeRestriction does."""
    restriction = noderestriction.NodeRestriction(services.store, services.authoriser)
    detail = restriction.check_token(
        call.user,
        namespace=call.target.namespace or "",
        name=call.target.name,
        request={"spec": msgspec.to_builtins(spec)},
    )
    if detail:
        raise status.forbidden(call.target.resource, call.target.name, detail=detail)


def _check_names(metadata: meta.ObjectMeta, call: Call) -> None:
    """Refuse a body that names another account than the path."""
    target = call.target
    for field, value, place in (
        ("name", metadata.name, target.name),
        ("namespace", metadata.namespace, target.namespace),
    ):
        if value and value != place:
            detail = f"must match the service account {field} if specified"
            problem = fielderror.invalid(METADATA.child(field), value, detail)
            raise status.invalid(_KIND, target.name, group=_GROUP, causes=[problem])


def _check(spec: _Spec) -> None:
    at, seconds = SPEC.child("expirationSeconds"), spec.expiration_seconds
    problems: list[fielderror.FieldError] = []
    if seconds < SHORTEST:
        problems.append(fielderror.invalid(at, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > LONGEST:
        problems.append(fielderror.invalid(at, seconds, "may not specify a duration larger than 2^32 seconds"))
    if problems:
        raise status.invalid(_KIND, "", group=_GROUP, causes=problems)


def _bind(services: Services, call: Call, spec: _Spec, *, unbound: Binding) -> Binding:
    """Return the claims about the account with those about the bound object."""
    reference = spec.bound_object_ref
    if reference is None:
        return unbound
    group, _, version = reference.api_version.rpartition("/")
    kind = _BOUND.get(reference.kind) if not group else None
    if kind is None:
        text = f"{group}/{version}, Kind={reference.kind}"
        raise status.bad_request(f"cannot bind token to object of type {text}")
    existing = _get(services, kind, call.target.namespace or "", name=reference.name)
    bound = unbound
    if kind is pod.KIND:
        spec_of_pod = existing.value.get("spec") or {}
        if spec_of_pod.get("serviceAccountName") != call.target.name:
            text = quotation.quote(call.target.name)
            raise status.bad_request(
                f"cannot bind token for serviceaccount {text} to pod running with different serviceaccount name."
            )
        if spec_of_pod.get("nodeName"):
            bound = msgspec.structs.replace(unbound, node=_node(services, spec_of_pod["nodeName"]))
    uid = existing.value["metadata"]["uid"]
    if reference.uid and reference.uid != uid:
        detail = (
            f"the UID in the bound object reference ({reference.uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise _conflict(reference.kind, reference.name, group=group, detail=detail)
    return msgspec.structs.replace(bound, **{kind.singular: Reference(reference.name, uid)})


def _get(services: Services, kind: resources.Resource, namespace: str, *, name: str) -> record.Record:
    if not name:
        raise status.bad_request("Name parameter required.")
    existing = services.store.get(record.Key(kind.key, namespace if kind.namespaced else "", name))
    if existing is None:
        raise status.not_found(kind, name)
    return existing


def _node(services: Services, name: str) -> Reference:
    """Return a reference to the node of a pod; the uid is empty if the node does not exist."""
    existing = services.store.get(record.Key(node.KIND.key, "", name))
    return Reference(name, existing.value["metadata"]["uid"] if existing is not None else "")


def _conflict(kind: str, name: str, *, group: str, detail: str) -> status.StatusError:
    subject = f"{refusal.qualified(kind, group)} {quotation.quote(name)}"
    details = {"name": name, "group": group, "kind": kind}
    return status.failure(409, "Conflict", f"Operation cannot be fulfilled on {subject}: {detail}", details=details)


def _reference(reference: _Reference | None) -> dict[str, Any] | None:
    if reference is None:
        return None
    fields = {
        "kind": reference.kind,
        "apiVersion": reference.api_version,
        "name": reference.name,
        "uid": reference.uid,
    }
    return {field: value for field, value in fields.items() if value}
