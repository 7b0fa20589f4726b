"""Asking webhooks about requests: whether one is concerned, what it is asked, and what a failure comes to."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma.cel import conditions
from drachma.server import status, webhookclient
from drachma.server.access import authorization
from drachma.server.admission import expressioninputs, serviceendpoints
from drachma.server.admission.matching import Place
from drachma.server.admission.request import Request
from drachma.server.admission.webhookregistry import Webhook
from drachma.server.admission.webhookreview import Failure, Question
from drachma.server.reads.reader import Reader
from drachma.store import record
from drachma.values import quotation

_encode = msgspec.json.Encoder().encode

_SERVICES: Final = "services"
_HTTPS: Final = 443


class Calls:
    """What calls of webhooks take, for one application."""

    def __init__(self, store: Reader, authoriser: authorization.Authoriser) -> None:
        self._store = store
        self._inputs = expressioninputs.Inputs(store, authoriser)

    def version(self, webhook: Webhook, request: Request, place: Place) -> str | None:
        """The version in which a webhook is to be asked about a request, or None.

        Raises:
            status.StatusError: that cannot be said, which counts as a refusal.
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
        """What a webhook is to be asked; a failure where it cannot be.

        Raises:
            status.StatusError: it must not be asked in a dry run.
        """
        if request.is_dry_run and webhook.has_side_effects:
            name = quotation.quote(webhook.name)
            raise status.bad_request(f"admission webhook {name} does not support dry run")
        if not webhook.version:
            known = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            return Failure(f"could not create admission objects: {known}")
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
            stored = self._store.get(record.Key(_SERVICES, namespace, name))
            if stored is None:
                missing = f"service {quotation.quote(name)} not found"
                return Failure(f"failed to call webhook: Post {quotation.quote(target.url)}: {missing}")
            place = serviceendpoints.place(stored, service.get("port") or _HTTPS, self._store)
            if isinstance(place, serviceendpoints.Simulated):
                problem = f"service {quotation.quote(name)}: its pods are simulated: {place.address} is not dialled"
                return Failure(f"failed to call webhook: Post {quotation.quote(target.url)}: {problem}")
            return msgspec.structs.replace(target, place=place)
        return target


def failed(webhook: Webhook, failure: Failure) -> status.StatusError:
    """The refusal of a request because a webhook could not be asked about it."""
    return status.internal(f"failed calling webhook {quotation.quote(webhook.name)}: {failure.message}")
