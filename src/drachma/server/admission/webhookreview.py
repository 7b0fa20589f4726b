"""AdmissionReviews: questions to webhooks, and their answers.

A question is a value: equal questions have the same answer, so the uid of the review is not part of it. An invalid
answer counts as a failure to call the webhook.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from drachma.server import status, webhookclient
from drachma.values import quotation

_GROUP: Final = "admission.k8s.io"
_KIND: Final = "AdmissionReview"
_BAD_REQUEST: Final = 400

_encode = msgspec.json.Encoder().encode


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Question to a webhook; ``request`` is the JSON of the AdmissionRequest without its uid."""

    target: webhookclient.Target
    seconds: int
    version: str
    request: bytes
    is_mutating: bool

    def body(self, uid: str) -> bytes:
        """Return the review."""
        head = _encode({"kind": _KIND, "apiVersion": f"{_GROUP}/{self.version}"})[:-1]
        return b'%b,"request":{"uid":%b,%b}' % (head, _encode(uid), self.request[1:])


class Failure(msgspec.Struct, frozen=True):
    """The webhook could not be called, or gave an invalid answer."""

    message: str


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """Valid answer of a webhook."""

    allowed: bool
    result: Mapping[str, Any] | None = None
    patch: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    annotations: Mapping[str, str] = {}


Answer: TypeAlias = Response | Failure


class _Details(msgspec.Struct, rename="camel"):
    uid: str = ""
    allowed: bool = False
    status: dict[str, Any] | None = None
    patch: str | None = None
    patch_type: str | None = None
    audit_annotations: dict[str, str] | None = None
    warnings: list[str] | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    response: _Details | None = None


_decode = msgspec.json.Decoder(_Review).decode
_decode_patch = msgspec.json.Decoder(list[dict[str, Any]]).decode


async def ask(question: Question, uid: str, client: webhookclient.WebhookClient) -> Answer:
    """Return the webhook's answer, or the failure."""
    try:
        data = await client.post(question.target, question.body(uid), seconds=question.seconds)
    except webhookclient.CallError as error:
        return Failure(f"failed to call webhook: {error}")
    try:
        review = _decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        return Failure(f"failed to call webhook: couldn't get version/kind; json parse error: {error}")
    try:
        return _response(question, review, uid)
    except _InvalidAnswerError as error:
        return Failure(str(error))


class _InvalidAnswerError(Exception):
    """An answer does not fit its question."""


def _response(question: Question, review: _Review, uid: str) -> Response:
    details = review.response
    if details is None:
        raise _invalid("webhook response was absent")
    patch, patch_type = details.patch, details.patch_type
    if question.version == "v1":
        _verify(details, review, question, uid)
    elif patch:
        patch_type = "JSONPatch"
    if not question.is_mutating:
        patch = None
    return Response(
        allowed=details.allowed,
        result=details.status,
        patch=_patch(patch, patch_type) if patch and details.allowed else (),
        warnings=tuple(details.warnings or ()),
        annotations=details.audit_annotations or {},
    )


def _verify(details: _Details, review: _Review, question: Question, uid: str) -> None:
    if details.uid != uid:
        raise _invalid(f"expected response.uid={quotation.quote(uid)}, got {quotation.quote(details.uid)}")
    want, got = f"{_GROUP}/v1, Kind={_KIND}", f"{review.api_version}, Kind={review.kind}"
    if got != want:
        raise _invalid(f"expected webhook response of {want}, got {got}")
    if not question.is_mutating:
        if details.patch:
            raise _invalid("validating webhook may not return response.patch")
        if details.patch_type is not None:
            raise _invalid("validating webhook may not return response.patchType")
        return
    if details.patch and details.patch_type is None:
        raise _invalid("webhook returned response.patch but not response.patchType")
    if not details.patch and details.patch_type is not None:
        raise _invalid("webhook returned response.patchType but not response.patch")
    if details.patch_type == "":
        raise _invalid('webhook returned invalid response.patchType of ""')


def _invalid(problem: str) -> _InvalidAnswerError:
    return _InvalidAnswerError(f"received invalid webhook response: {problem}")


def _patch(text: str, patch_type: str | None) -> tuple[Mapping[str, Any], ...]:
    try:
        operations = _decode_patch(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise _InvalidAnswerError(f"received undecodable patch in webhook response: {error}") from None
    if operations and patch_type != "JSONPatch":
        raise _InvalidAnswerError(f"unsupported patch type {quotation.quote(patch_type or '')}")
    return tuple(operations)


def denial(name: str, result: Mapping[str, Any] | None) -> status.StatusError:
    """Return the refusal of a request that a webhook denied, with its explanation."""
    explanation_fields = result or {}
    by = f"admission webhook {quotation.quote(name)} denied the request"
    reason, explanation = _text(explanation_fields, "reason"), _text(explanation_fields, "message")
    message = f"{by}: {explanation or reason}" if explanation or reason else f"{by} without explanation"
    code = explanation_fields.get("code")
    document: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
    }
    if reason:
        document["reason"] = reason
    if isinstance(explanation_fields.get("details"), dict):
        document["details"] = explanation_fields["details"]
    document["code"] = code if isinstance(code, int) and _BAD_REQUEST <= code < 600 else _BAD_REQUEST
    return status.StatusError(document)


def _text(result: Mapping[str, Any], field: str) -> str:
    text = result.get(field)
    return text if isinstance(text, str) else ""
