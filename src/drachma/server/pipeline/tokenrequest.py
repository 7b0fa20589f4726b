"""Token requests: a token for a service account, bound to a pod, a secret, a node, or only to the account."""

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
from drachma.server.kinds.core import namespace as namespace_kind
from drachma.server.kinds.core import node, pod, secret
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
"""What pods' own tokens ask for. Those are good for longer, because some programs read them once and never again."""

EXTENDED: Final = 365 * 24 * HOUR

_GROUP: Final = "authentication.k8s.io"
_KIND: Final = "TokenRequest"
_BOUND: Final[dict[str, resources.Resource]] = {"Pod": pod.KIND, "Secret": secret.KIND, "Node": node.KIND}
"""What a token can be bound to, all in the core group."""


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
    """The request with the token; the object that it is to be bound to must be there, and be the one that is meant."""
    media_type = negotiation.body_type(call.body.media_type)
    wanted = options.for_write(call.query, "CreateOptions")
    request = podcalls.read(call, _TokenRequest, wanted, media_type=media_type)
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
    return _answer(services, spec, _bound(services, call, spec, unbound=unbound))


def _answer(services: Services, spec: _Spec, binding: Binding) -> Answer:
    issuer, now = services.issuer, services.clock()
    audiences, seconds = spec.audiences or issuer.audiences, spec.expiration_seconds
    lifetime = seconds
    if binding.pod is not None and seconds == POD_SECONDS and set(audiences) <= set(issuer.audiences):
        warn_after = int(now.timestamp()) + seconds
        binding = msgspec.structs.replace(binding, warnafter=warn_after)
        lifetime = EXTENDED
    token = issuer.issue(
        binding, audiences=audiences, seconds=lifetime, token_id=objectmeta.generate_uid(services.chance)
    )
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
    """As NamespaceLifecycle: there must be a namespace for whatever is created in it, even if it is not stored."""
    namespace = call.target.namespace or ""
    if services.store.get(record.Key(namespacelifecycle.NAMESPACES, "", namespace)) is None:
        raise status.not_found(namespace_kind.KIND, namespace)


def _check_node(services: Services, call: Call, spec: _Spec) -> None:
    """As NodeRestriction: nodes get tokens for pods that run on them."""
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
    """Refuses a body that says it is about another account than the path."""
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


def _bound(services: Services, call: Call, spec: _Spec, *, unbound: Binding) -> Binding:
    """What a token says of its account, with the object that it is bound to."""
    reference = spec.bound_object_ref
    if reference is None:
        return unbound
    group, _, version = reference.api_version.rpartition("/")
    kind = _BOUND.get(reference.kind) if not group else None
    if kind is None:
        shown = f"{group}/{version}, Kind={reference.kind}"
        raise status.bad_request(f"cannot bind token to object of type {shown}")
    stored = _get(services, kind, call.target.namespace or "", name=reference.name)
    bound = unbound
    if kind is pod.KIND:
        spec_of_pod = stored.value.get("spec") or {}
        if spec_of_pod.get("serviceAccountName") != call.target.name:
            shown = quotation.quote(call.target.name)
            raise status.bad_request(
                f"cannot bind token for serviceaccount {shown} to pod running with different serviceaccount name."
            )
        if spec_of_pod.get("nodeName"):
            bound = msgspec.structs.replace(unbound, node=_node(services, spec_of_pod["nodeName"]))
    uid = stored.value["metadata"]["uid"]
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
    stored = services.store.get(record.Key(kind.key, namespace if kind.namespaced else "", name))
    if stored is None:
        raise status.not_found(kind, name)
    return stored


def _node(services: Services, name: str) -> Reference:
    """The node of a pod, which need not be there."""
    stored = services.store.get(record.Key(node.KIND.key, "", name))
    return Reference(name, stored.value["metadata"]["uid"] if stored is not None else "")


def _conflict(kind: str, name: str, *, group: str, detail: str) -> status.StatusError:
    shown = f"{refusal.qualified(kind, group)} {quotation.quote(name)}"
    details = {"name": name, "group": group, "kind": kind}
    return status.failure(409, "Conflict", f"Operation cannot be fulfilled on {shown}: {detail}", details=details)


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
