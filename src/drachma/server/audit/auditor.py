"""The auditor: makes audit events of calls, when they come and when they end.

The dispatcher tells it of every call. Of calls that are followed by many events, such as a watch, it notes that the
answer has begun; of all others, that it is complete.
"""

import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from urllib import parse

import msgspec

from drachma.api import codec, meta
from drachma.server import status
from drachma.server.audit.log import Log
from drachma.server.audit.policy import Level, Policy, Treatment
from drachma.server.calls.call import Call
from drachma.server.pipeline.answer import Answer, Unstored, Verbatim
from drachma.server.pipeline.phases import Finish
from drachma.server.surface import verbs
from drachma.store import record

_NAMES: Final = {
    Level.METADATA: "Metadata",
    Level.REQUEST: "Request",
    Level.REQUEST_RESPONSE: "RequestResponse",
}
_PATCHES: Final = "patch.webhook.admission.k8s.io/"

Event = dict[str, Any]


class Auditor:
    """Notes calls in a log as a policy says."""

    def __init__(self, policy: Policy, log: Log, *, clock: Callable[[], datetime]) -> None:
        self._policy: Final = policy
        self._log: Final = log
        self._clock: Final = clock

    def __call__(self, call: Call) -> Finish | None:
        """Notes that a call has come; what is returned is to be told how it ended. None where nothing is noted."""
        treatment = self._policy.treatment(call)
        if treatment.level is Level.NONE:
            return None
        event = _event(call, treatment, self._clock())
        stage = {"stage": "RequestReceived", "stageTimestamp": event["requestReceivedTimestamp"]}
        self._note({**event, **stage}, treatment)
        return lambda end: self._finish(event, call, end, treatment)

    def _finish(self, event: Event, call: Call, end: Answer | status.StatusError, treatment: Treatment) -> None:
        stage = "ResponseStarted" if call.verb == verbs.WATCH and isinstance(end, Answer) else "ResponseComplete"
        ended = {**event, "stage": stage, "responseStatus": _status(end)}
        if call.verb == verbs.CREATE and not call.target.name:
            ended["objectRef"] = _named(event["objectRef"], end)
        if treatment.level >= Level.REQUEST:
            _add(ended, "requestObject", _request_object(call), treatment)
        if treatment.level >= Level.REQUEST_RESPONSE:
            _add(ended, "responseObject", _response_object(end), treatment)
        annotations = {
            key: text
            for key, text in call.annotations.items()
            if treatment.level >= Level.REQUEST or not key.startswith(_PATCHES)
        }
        if annotations:
            ended["annotations"] = annotations
        self._note({**ended, "stageTimestamp": _time(self._clock())}, treatment)

    def _note(self, event: Event, treatment: Treatment) -> None:
        if event["stage"] not in treatment.omitted_stages:
            self._log.write(event)


def _event(call: Call, treatment: Treatment, now: datetime) -> Event:
    target, user = call.target, call.user
    info = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": user.extra}
    reference = {
        "resource": target.resource.plural,
        "namespace": target.namespace,
        "name": target.name,
        "apiGroup": target.resource.group,
        "apiVersion": target.version,
        "subresource": target.subresource.name if target.subresource is not None else "",
    }
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": _NAMES[treatment.level],
        "auditID": str(uuid.uuid4()),
        "requestURI": _uri(call),
        "verb": call.verb,
        "user": {field: value for field, value in info.items() if value},
        "userAgent": call.user_agent,
        "objectRef": {field: value for field, value in reference.items() if value},
        "requestReceivedTimestamp": _time(now),
    }
    if call.source:
        event["sourceIPs"] = [call.source]
    return event


def _uri(call: Call) -> str:
    target = call.target
    group = target.resource.group
    parts = ["apis", group, target.version] if group else ["api", target.version]
    if target.resource.namespaced and target.namespace:
        parts += ["namespaces", target.namespace]
    parts.append(target.resource.plural)
    parts += filter(None, (target.name, target.subresource.name if target.subresource is not None else ""))
    path = "/" + "/".join(map(parse.quote, parts))
    query = parse.urlencode([(name, value) for name, texts in call.query.items() for value in texts])
    return f"{path}?{query}" if query else path


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _status(end: Answer | status.StatusError) -> Event:
    if isinstance(end, Answer):
        return {"metadata": {}, "code": end.code}
    return {field: value for field, value in end.document.items() if field not in ("kind", "apiVersion")}


def _named(reference: Event, end: Answer | status.StatusError) -> Event:
    """The reference to a new object, which has its name from what was made of it."""
    if isinstance(end, status.StatusError):
        name = (end.document.get("details") or {}).get("name")
    else:
        name = (_response_object(end) or {}).get("metadata", {}).get("name")
    return {**reference, "name": name} if name else reference


def _request_object(call: Call) -> Any:
    content = call.body.content
    if isinstance(content, meta.Object):
        return msgspec.Raw(codec.encode_json(content, api_version=call.target.api_version))
    if content is not None or not call.body.data:
        return content
    try:
        return msgspec.json.decode(call.body.data)
    except msgspec.DecodeError:
        # What is no JSON cannot be part of it.
        return None


def _response_object(end: Answer | status.StatusError) -> Any:
    if isinstance(end, status.StatusError):
        return end.document
    match end.content:
        case record.Record():
            return end.content.value
        case Unstored() | Verbatim():
            return end.content.document
        case _:
            # Lists and watches are not repeated in the log.
            return None


def _add(event: Event, field: str, content: Any, treatment: Treatment) -> None:
    if content is None:
        return
    if treatment.omits_managed_fields and isinstance(content, Mapping) and isinstance(content.get("metadata"), Mapping):
        metadata = {name: value for name, value in content["metadata"].items() if name != "managedFields"}
        content = {**content, "metadata": metadata}
    event[field] = content
