"""Calls of webhooks: matching, questions, and refusals after failures."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from drachma.api import node
from drachma.cel import conditions
from drachma.server import status, webhookclient
from drachma.server.access import authorization
from drachma.server.admission import expressioninputs
from drachma.server.admission.matching import Place
from drachma.server.admission.request import Request
from drachma.server.admission.webhookregistry import Webhook
from drachma.server.admission.webhookreview import Failure, Question
from drachma.server.reads.reader import Reader
from drachma.store import record
from drachma.values import quotation

_encode = msgspec.json.Encoder().encode

_SERVICES: Final = "services"
_SLICES: Final = "discovery.k8s.io/endpointslices"
_SERVICE: Final = "kubernetes.io/service-name"
_NODES: Final = "nodes"
_PODS: Final = "pods"
_HTTPS: Final = 443


class Calls:
    """Matches requests with webhooks and prepares the calls."""

    def __init__(self, store: Reader, authoriser: authorization.Authoriser) -> None:
        self._store = store
        self._inputs = expressioninputs.Inputs(store, authoriser)

    def version(self, webhook: Webhook, request: Request, place: Place) -> str | None:
        """Return the version in which a webhook is called about a request; None if it does not match.

        Raises:
            status.StatusError: matching failed, which refuses the request.
        """
        version = webhook.criteria.match(request, place, store=self._store)
        if version is None or not webhook.conditions:
            return version
        inputs = self._inputs.make(webhook.names, request, version)
        try:
            return version if webhook.holds(inputs) else None
        except (conditions.UndecidedError, conditions.OutOfBudgetError) as error:
            if webhook.ignores_failure:
                return None
            raise status.forbidden(request.write.resource, request.name, detail=str(error)) from None

    def question(self, webhook: Webhook, request: Request, version: str, *, is_mutating: bool) -> Question | Failure:
        """Return the question for a webhook, or a failure if it cannot be called.

        Raises:
            status.StatusError: the webhook must not be called in a dry run.
        """
        if request.is_dry_run and webhook.has_side_effects:
            name = quotation.quote(webhook.name)
            raise status.bad_request(f"admission webhook {name} does not support dry run")
        if not webhook.version:
            problem = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            return Failure(f"could not create admission objects: {problem}")
        target = self._target(webhook.client)
        if isinstance(target, Failure):
            return target
        objects = {"object": request.object(version), "oldObject": request.old_object(version)}
        return Question(
            target=target,
            seconds=webhook.seconds,
            version=webhook.version,
            request=_encode({**request.document(version), **objects}),
            is_mutating=is_mutating,
        )

    def _target(self, client: Mapping[str, Any]) -> webhookclient.Target | Failure:
        target, service = webhookclient.target_of(client), client.get("service")
        if service is not None:
            name, namespace = service.get("name", ""), service.get("namespace", "")
            service_record = self._store.get(record.Key(_SERVICES, namespace, name))
            if service_record is None:
                problem = f"service {quotation.quote(name)} not found"
                return Failure(f"failed to call webhook: Post {quotation.quote(target.url)}: {problem}")
            endpoint = _find_endpoint(service_record, service.get("port") or _HTTPS, self._store)
            if isinstance(endpoint, _Simulated):
                problem = f"service {quotation.quote(name)}: its pods are simulated: {endpoint.address} is not dialled"
                return Failure(f"failed to call webhook: Post {quotation.quote(target.url)}: {problem}")
            return msgspec.structs.replace(target, place=endpoint)
        return target


def make_failure_refusal(webhook: Webhook, failure: Failure) -> status.StatusError:
    """Return the refusal of a request because a webhook could not be called."""
    return status.internal(f"failed calling webhook {quotation.quote(webhook.name)}: {failure.message}")


class _Simulated(NamedTuple):
    """Endpoint that is a simulated pod.

    Simulated pods have addresses, as if there were a network. Nothing answers there, and in the network of the machine
    the address may belong to another server, so it is never dialled.
    """

    address: str


def _find_endpoint(service: record.Record, port: int, store: Reader) -> tuple[str, int] | _Simulated | None:
    """Return the first address and port of a ready endpoint for a port of a service.

    Endpoints come from EndpointSlices, because nothing routes to the service's own address. Return _Simulated if all
    endpoints are simulated pods, and None if there is none.
    """
    ports = (service.value.get("spec") or {}).get("ports") or ()
    names = {each.get("name", "") for each in ports if each.get("port") == port}
    simulated: _Simulated | None = None
    for each in _slices(service, store):
        for endpoint, address, number in _endpoints(each, names):
            if not _is_simulated(endpoint, store):
                return address, number
            simulated = simulated or _Simulated(address)
    return simulated


def _is_simulated(endpoint: Mapping[str, Any], store: Reader) -> bool:
    """Return True if the node of an endpoint, which it names itself or by its pod, runs simulated containers."""
    name = endpoint.get("nodeName") or ""
    target = endpoint.get("targetRef") or {}
    if not name and target.get("kind") == "Pod":
        pod = store.get(record.Key(_PODS, target.get("namespace", ""), target.get("name", "")))
        name = "" if pod is None else (pod.value.get("spec") or {}).get("nodeName") or ""
    existing = store.get(record.Key(_NODES, "", name)) if name else None
    if existing is None:
        return False
    info = (existing.value.get("status") or {}).get("nodeInfo") or {}
    return str(info.get("containerRuntimeVersion") or "").startswith(node.SIMULATED_RUNTIME)


def _slices(service: record.Record, store: Reader) -> Iterator[Mapping[str, Any]]:
    for each in store.list(_SLICES, service.key.namespace).records:
        if (each.value["metadata"].get("labels") or {}).get(_SERVICE) == service.key.name:
            yield each.value


def _endpoints(endpoint_slice: Mapping[str, Any], names: set[str]) -> Iterator[tuple[Mapping[str, Any], str, int]]:
    if endpoint_slice.get("addressType") == "FQDN":
        return
    numbers = [
        each["port"]
        for each in endpoint_slice.get("ports") or ()
        if each.get("port") and (each.get("name") or "") in names
    ]
    for endpoint in endpoint_slice.get("endpoints") or ():
        # As in upstream, an endpoint without this condition is ready.
        is_ready = (endpoint.get("conditions") or {}).get("ready") is not False
        for address in (endpoint.get("addresses") or ())[:1] if is_ready else ():
            for number in numbers:
                yield endpoint, address, number
