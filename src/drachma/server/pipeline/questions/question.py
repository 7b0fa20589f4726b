"""What all questions share: how they are read, and the form of their answers."""

from typing import Any

from drachma.server.admission.proposal import Proposal
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.pipeline import creation, identity
from drachma.server.pipeline.answer import Answer, Unstored
from drachma.server.pipeline.services import Services
from drachma.server.presentation import negotiation


def read(services: Services, call: Call) -> dict[str, Any]:
    """The question in the body of a call, in normal form and with its kind's defaults; a 400 for what is none."""
    media_type = negotiation.body_type(call.body.media_type)
    wanted = options.for_write(call.query, "CreateOptions")
    write = services.write(call)
    subject = creation.decode(call, write, wanted=wanted, media_type=media_type)
    proposal = Proposal(subject, write, options=wanted, get=services.store.get)
    identity.place(proposal)
    return proposal.document()


def answer(call: Call, document: dict[str, Any]) -> Answer:
    """An answer in the version that was asked in."""
    strategy = call.surface.strategy(call.target.resource)
    return Answer(201, Unstored(strategy.serve(document, call.target.version)))
