"""SelfSubjectReviews: who am I."""

from typing import Any

from drachma.api import meta
from drachma.server.calls.call import Call
from drachma.server.kinds.authentication import userinfo
from drachma.server.pipeline.answer import Answer
from drachma.server.pipeline.questions import question
from drachma.server.pipeline.services import Services


def answer(services: Services, call: Call, asked: dict[str, Any]) -> Answer:
    """Tells the user of a call who that is; whatever else the question says does not matter."""
    return question.answer(
        call,
        {
            "kind": asked["kind"],
            "apiVersion": asked["apiVersion"],
            "metadata": {"creationTimestamp": meta.time_text(services.clock())},
            "status": {"userInfo": userinfo.document(call.user)},
        },
    )
