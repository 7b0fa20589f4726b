"""ValidatingAdmissionWebhook: webhooks see a request at the same time, and each can refuse it."""

from typing import Final

from drachma.server import status
from drachma.server.access import authorization
from drachma.server.admission import matching, webhookcalls, webhookreview
from drachma.server.admission.matching import Place
from drachma.server.admission.proposal import Proposal, Removal
from drachma.server.admission.request import RemovalRequest, Request, WriteRequest
from drachma.server.admission.webhookregistry import Webhook, Webhooks
from drachma.server.admission.webhookreview import Failure, Question, Response
from drachma.server.reads.reader import Reader
from drachma.server.surface.strategy import Write

_CONFIGURATIONS: Final = "admissionregistration.k8s.io/validatingwebhookconfigurations"
_FAILED_OPEN: Final = "failed-open.validating.webhook.admission.k8s.io/round_0_index_"


class ValidatingAdmissionWebhook:
    """Upstream's admission plugin of that name."""

    def __init__(self, store: Reader, authoriser: authorization.Authoriser) -> None:
        self._calls = webhookcalls.Calls(store, authoriser)
        self._webhooks = Webhooks(store, configurations=_CONFIGURATIONS)

    def concerns(self, write: Write) -> bool:
        """Return True if a webhook may refuse the object of a write."""
        return not self._webhooks.is_empty and write.resource.group_resource not in matching.EXEMPT

    def validate(self, proposal: Proposal) -> None:
        """Refuse an object that a webhook refuses."""
        if self.concerns(proposal.write):
            self._validate(WriteRequest(proposal))

    def validate_removal(self, removal: Removal) -> None:
        """Refuse a deletion that a webhook refuses."""
        if self.concerns(removal.write):
            self._validate(RemovalRequest(removal))

    def _validate(self, request: Request) -> None:
        place = Place.of(request)
        calls: list[tuple[Webhook, Question | Failure]] = []
        for webhook in self._webhooks.covering(place):
            version = self._calls.version(webhook, request, place)
            if version is not None:
                calls.append((webhook, self._calls.question(webhook, request, version, is_mutating=False)))
        if not calls:
            return
        questions = [question for _, question in calls if isinstance(question, Question)]
        answers = dict(zip(questions, request.write.consultation.answers(*questions), strict=True))
        refusals = []
        for position, (webhook, question) in enumerate(calls):
            answer = answers[question] if isinstance(question, Question) else question
            refusal = _judge(webhook, answer, request, position)
            if refusal is not None:
                refusals.append(refusal)
        if refusals:
            raise refusals[0]


def _judge(webhook: Webhook, answer: Response | Failure, request: Request, position: int) -> status.StatusError | None:
    if isinstance(answer, Failure):
        if webhook.ignores_failure:
            request.write.annotations[f"{_FAILED_OPEN}{position}"] = webhook.name
            return None
        return webhookcalls.make_failure_refusal(webhook, answer)
    note(webhook, answer, request)
    return None if answer.allowed else webhookreview.denial(webhook.name, answer.result)


def note(webhook: Webhook, response: Response, request: Request) -> None:
    """Pass on a webhook's warnings and audit annotations."""
    for text in response.warnings:
        request.write.warn(text)
    for key, text in response.annotations.items():
        request.write.annotations[f"{webhook.name}/{key}"] = text
