"""MutatingAdmissionWebhook: webhooks see a request in turn, and each can refuse or change it."""

from typing import Final

import msgspec

from drachma.server import documents, status
from drachma.server.access import authorization
from drachma.server.admission import matching, webhookcalls, webhookreview
from drachma.server.admission.matching import Place
from drachma.server.admission.proposal import Proposal, Removal
from drachma.server.admission.reinvocation import Rounds
from drachma.server.admission.request import RemovalRequest, Request, WriteRequest
from drachma.server.admission.validatingadmissionwebhook import note
from drachma.server.admission.webhookregistry import Webhook, Webhooks
from drachma.server.admission.webhookreview import Failure, Response
from drachma.server.patch import jsonpatch
from drachma.server.reads.reader import Reader
from drachma.server.surface.strategy import Write
from drachma.values import quotation

_CONFIGURATIONS: Final = "admissionregistration.k8s.io/mutatingwebhookconfigurations"
_MUTATION: Final = "mutation.webhook.admission.k8s.io/"
_PATCH: Final = "patch.webhook.admission.k8s.io/"

_encode = msgspec.json.Encoder().encode


class MutatingAdmissionWebhook:
    """Upstream's admission plugin of that name."""

    def __init__(self, store: Reader, authoriser: authorization.Authoriser) -> None:
        self._calls = webhookcalls.Calls(store, authoriser)
        self._webhooks = Webhooks(store, configurations=_CONFIGURATIONS)

    def concerns(self, write: Write) -> bool:
        """Return True if a webhook may have to be called."""
        return not self._webhooks.is_empty and write.resource.group_resource not in matching.EXEMPT

    def admit(self, proposal: Proposal, rounds: Rounds) -> None:
        """Have webhooks change an object; in a second round only those that asked for reinvocation."""
        self._admit(WriteRequest(proposal), rounds)

    def admit_removal(self, removal: Removal) -> None:
        """Refuse a deletion that a webhook refuses."""
        if not self._webhooks.is_empty and removal.write.resource.group_resource not in matching.EXEMPT:
            self._admit(RemovalRequest(removal), Rounds())

    def _admit(self, request: Request, rounds: Rounds) -> None:
        place = Place.of(request)
        for position, webhook in enumerate(self._webhooks.covering(place)):
            version = self._calls.version(webhook, request, place)
            if version is None or not rounds.includes(webhook.key):
                continue
            is_changed = self._call(webhook, request, version, f"round_{rounds.number}_index_{position}")
            rounds.note(webhook.key, is_changed=is_changed, again=webhook.is_reinvoked)

    def _call(self, webhook: Webhook, request: Request, version: str, key: str) -> bool:
        """Call a webhook; return True if it changed the object."""
        question = self._calls.question(webhook, request, version, is_mutating=True)
        answer: Response | Failure
        if isinstance(question, Failure):
            answer = question
        else:
            (answer,) = request.write.consultation.answers(question)
        annotations = request.write.annotations
        if isinstance(answer, Failure):
            if not webhook.ignores_failure:
                raise webhookcalls.make_failure_refusal(webhook, answer)
            annotations[f"failed-open.{_MUTATION}{key}"] = webhook.name
            return False
        note(webhook, answer, request)
        if not answer.allowed:
            raise webhookreview.denial(webhook.name, answer.result)
        by = {"configuration": webhook.configuration, "webhook": webhook.name}
        is_changed = bool(answer.patch) and _apply(webhook, answer, request, version)
        annotations[f"{_MUTATION}{key}"] = _encode({**by, "mutated": is_changed}).decode()
        if answer.patch:
            patch_record = {**by, "patch": answer.patch, "patchType": "JSONPatch"}
            annotations[f"{_PATCH}{key}"] = _encode(patch_record).decode()
        return is_changed


def _apply(webhook: Webhook, response: Response, request: Request, version: str) -> bool:
    if not isinstance(request, WriteRequest) or request.subresource == "binding":
        detail = "attempted to modify the object, which is not supported for this operation"
        raise status.internal(f"admission webhook {quotation.quote(webhook.name)} {detail}")
    before = request.object(version)
    assert before is not None, "a write has an object"
    try:
        patched = jsonpatch.apply(dict(before), list(response.patch))
    except jsonpatch.NotApplicableError as error:
        raise status.internal(str(error)) from None
    if not isinstance(patched, dict):
        raise status.internal("the patched object is none")
    if documents.same(patched, before):
        return False
    request.proposal.replace(patched, version)
    return True
