"""TokenReviews: whose is this token."""

from typing import Any

from drachma.server import status
from drachma.server.calls.call import Call
from drachma.server.kinds.authentication import userinfo
from drachma.server.pipeline.answer import Answer
from drachma.server.pipeline.questions import question
from drachma.server.pipeline.services import Services


def answer(services: Services, call: Call, asked: dict[str, Any]) -> Answer:
    """The user that a token stands for, or why it is no good; a 400 for no token at all."""
    spec = asked.get("spec") or {}
    token = spec.get("token", "")
    if not token:
        raise status.bad_request("token is required for TokenReview in authentication")
    review = services.authenticator.review(token, spec.get("audiences") or ())
    verdict: dict[str, Any] = {"user": {}}
    if review.identity is None:
        verdict["error"] = review.problem
    else:
        user, audiences = review.identity
        verdict |= {"authenticated": True, "user": userinfo.document(user), "audiences": list(audiences)}
    return question.answer(call, {**asked, "status": verdict})
