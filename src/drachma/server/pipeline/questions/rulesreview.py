"""SelfSubjectRulesReviews: what may I do here, which ``kubectl auth can-i --list`` asks."""

from typing import Any

from drachma.server import status
from drachma.server.access import policyrules
from drachma.server.calls.call import Call
from drachma.server.pipeline.answer import Answer
from drachma.server.pipeline.questions import question
from drachma.server.pipeline.services import Services


def answer(services: Services, call: Call, asked: dict[str, Any]) -> Answer:
    """The rules of who asks, in a namespace and beside all; the answer does not repeat the question."""
    namespace = (asked.get("spec") or {}).get("namespace", "")
    if not namespace:
        raise status.bad_request("no namespace on request")
    known = services.authoriser.rules(call.user, namespace)
    answered = {
        "resourceRules": [policyrules.write(rule) for rule in known.rules if rule.resources],
        "nonResourceRules": [policyrules.write(rule) for rule in known.rules if rule.paths],
        "incomplete": not known.is_complete,
    }
    if known.problem:
        answered["evaluationError"] = known.problem
    head = {"kind": asked["kind"], "apiVersion": asked["apiVersion"], "metadata": {}}
    return question.answer(call, {**head, "spec": {}, "status": answered})
