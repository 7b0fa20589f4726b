"""The auditor: makes audit events of calls and of other requests.

The dispatcher reports every call. The HTTP side reports requests that do not become calls: non-resource paths, and
requests that it refuses itself. A watch has an event when its answer starts and another when it ends.
"""

import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from urllib import parse

import msgspec

from drachma.api import codec, meta
from drachma.server import status
from drachma.server.access import attributes
from drachma.server.access.authorization import Attributes
from drachma.server.audit.log import Log
from drachma.server.audit.policy import Level, Policy, Treatment
from drachma.server.calls.call import Call, Origin
from drachma.server.pipeline.answer import Answer, Unstored, Verbatim
from drachma.server.pipeline.phases import Finish
from drachma.server.reads import watching
from drachma.server.surface import verbs
from drachma.server.user import User
from drachma.store import record

_NAMES: Final = {
    Level.METADATA: "Metadata",
    Level.REQUEST: "Request",
    Level.REQUEST_RESPONSE: "RequestResponse",
}
_PATCHES: Final = "patch.webhook.admission.k8s.io/"
_NO_ANNOTATIONS: Final[Mapping[str, str]] = {}

Event = dict[str, Any]


class Auditor:
    """Records calls in a log according to a policy."""

    def __init__(self, policy: Policy, log: Log, *, clock: Callable[[], datetime]) -> None:
        self._policy: Final = policy
        self._log: Final = log
        self._clock: Final = clock

    def call(self, call: Call) -> Finish | None:
        """Record the start of a call; return the function that records its result, or None to ignore the call."""
        question = attributes.from_call(call)
        treatment = self._policy.treatment(question)
        if treatment.level is Level.NONE:
            return None
        event = _event(question, call.origin, level=treatment.level, now=self._clock())
        event["userAgent"] = call.user_agent
        event.setdefault("requestURI", _uri(call))
        self._receive(event, treatment)
        return lambda end: self._finish(event, call, end, treatment)

    def request(
        self,
        attributes: Attributes,
        end: int | status.StatusError,
        *,
        origin: Origin,
        user_agent: str,
        annotations: Mapping[str, str],
    ) -> None:
        """Record a request that did not become a call; if it was not authenticated, only its refusal."""
        treatment = self._policy.treatment(attributes)
        if treatment.level is Level.NONE:
            return
        event = _event(attributes, origin, level=treatment.level, now=self._clock())
        event["userAgent"] = user_agent
        stage = "ResponseComplete"
        if attributes.user.name:
            self._receive(event, treatment)
        else:
            stage = "ResponseStarted"
        event["stage"] = stage
        event["responseStatus"] = _status(end)
        if treatment.level >= Level.REQUEST_RESPONSE and isinstance(end, status.StatusError):
            event["responseObject"] = end.document
        self._note(event, treatment, annotations)

    async def flush(self) -> None:
        """Return once all events so far are in the log."""
        await self._log.flush()

    def _receive(self, event: Event, treatment: Treatment) -> None:
        """Record the arrival of a request, before its impersonated user is known."""
        impersonation = ("impersonatedUser", "authenticationMetadata")
        fields = {field: value for field, value in event.items() if field not in impersonation}
        self._note({**fields, "stage": "RequestReceived"}, treatment)

    def _finish(self, event: Event, call: Call, end: Answer | status.StatusError, treatment: Treatment) -> None:
        ended = {**event, "responseStatus": _status(end)}
        if call.verb == verbs.CREATE and not call.target.name:
            ended["objectRef"] = _name_reference(event["objectRef"], end)
        if treatment.level >= Level.REQUEST:
            _add(ended, "requestObject", _request_object(call), treatment)
        if treatment.level >= Level.REQUEST_RESPONSE:
            _add(ended, "responseObject", _response_object(end), treatment)
        complete = {**ended, "stage": "ResponseComplete"}
        if isinstance(end, Answer) and isinstance(end.content, watching.Watch):
            self._note({**ended, "stage": "ResponseStarted"}, treatment, call.annotations)
            end.content.call_at_end(lambda: self._note(complete, treatment, call.annotations))
        else:
            self._note(complete, treatment, call.annotations)

    def _note(self, event: Event, treatment: Treatment, annotations: Mapping[str, str] = _NO_ANNOTATIONS) -> None:
        if event["stage"] in treatment.omitted_stages:
            return
        combined = {
            key: text
            for key, text in annotations.items()
            if treatment.level >= Level.REQUEST or not key.startswith(_PATCHES)
        }
        if combined:
            event["annotations"] = combined
        event["stageTimestamp"] = _time(self._clock())
        self._log.write(event)


def _event(attributes: Attributes, origin: Origin, *, level: Level, now: datetime) -> Event:
    """Return the fields of an event that are known when the request arrives."""
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": _NAMES[level],
        "auditID": origin.identifier or str(uuid.uuid4()),
        "verb": attributes.verb,
        "user": _user(origin.asker or attributes.user),
        "requestReceivedTimestamp": _time(now),
    }
    if origin.uri:
        event["requestURI"] = origin.uri
    if origin.sources:
        event["sourceIPs"] = list(origin.sources)
    if origin.asker is not None:
        event["impersonatedUser"] = _user(attributes.user)
        if origin.constraint:
            event["authenticationMetadata"] = {"impersonationConstraint": origin.constraint}
    if attributes.path is None:
        reference = {
            "resource": attributes.resource,
            "namespace": attributes.namespace,
            "name": attributes.name,
            "apiGroup": attributes.group,
            "apiVersion": attributes.version,
            "subresource": attributes.subresource,
        }
        event["objectRef"] = {field: value for field, value in reference.items() if value}
    return event


def _user(user: User) -> Event:
    info = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": user.extra}
    return {field: value for field, value in info.items() if value}


def _uri(call: Call) -> str:
    """Return the path that a call in process would have over HTTP."""
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
    return meta.micro_time_text(moment)


def _status(end: Answer | status.StatusError | int) -> Event:
    if not isinstance(end, status.StatusError):
        return {"metadata": {}, "code": end if isinstance(end, int) else end.code}
    return {field: value for field, value in end.document.items() if field not in ("kind", "apiVersion")}


def _name_reference(reference: Event, end: Answer | status.StatusError) -> Event:
    """Return the reference to a created object, with the name from the answer."""
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
    except (ValueError, RecursionError):
        # Bytes that are no JSON, no UTF-8 or too deeply nested cannot be part of an event.
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
            # Lists and watches are not recorded.
            return None


def _add(event: Event, field: str, content: Any, treatment: Treatment) -> None:
    if content is None:
        return
    if treatment.omits_managed_fields and isinstance(content, Mapping) and isinstance(content.get("metadata"), Mapping):
        metadata = {name: value for name, value in content["metadata"].items() if name != "managedFields"}
        content = {**content, "metadata": metadata}
    event[field] = content
