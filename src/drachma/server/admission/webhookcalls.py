"""Calls of webhooks: matching, questions, and refusals after failures."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma.cel import conditions
from drachma.server import serviceendpoints, status, webhookclient
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
            service_record = self._store.get(record.Key(serviceendpoints.SERVICES, namespace, name))
            if service_record is None:
                problem = f"service {quotation.quote(name)} not found"
                return Failure(f"failed to call webhook: Post {quotation.quote(target.url)}: {problem}")
            endpoint = serviceendpoints.find(service_record, service.get("port") or _HTTPS, self._store)
            if isinstance(endpoint, serviceendpoints.Simulated):
                problem = (
                    f"service {quotation.quote(name)}: its pods are simulated: {endpoint.address} is not dialled; "
                    "delete the webhook configuration, or run its pods with --runtime process or podman"
                )
                return Failure(f"failed to call webhook: Post {quotation.quote(target.url)}: {problem}")
            place = None if endpoint is None else (endpoint.address, endpoint.port)
            return msgspec.structs.replace(target, place=place)
        return target


def make_failure_refusal(webhook: Webhook, failure: Failure) -> status.StatusError:
    """Return the refusal of a request because a webhook could not be called."""
    return status.internal(f"failed calling webhook {quotation.quote(webhook.name)}: {failure.message}")
