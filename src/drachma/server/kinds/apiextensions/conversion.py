"""Conversion of custom objects between versions by a webhook that the definition names.

Answers are looked up by value (see ``surface.consultation``): if an answer is not known yet, the request stops, the
webhook is called, and the request starts again. A bounded number of answers is cached, because objects are read more
often than they are written. A webhook may change everything but the identity of an object.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.server import status, webhookclient
from drachma.server.surface.consultation import Consultation
from drachma.values import quotation

_GROUP: Final = "apiextensions.k8s.io"
_KIND: Final = "ConversionReview"
_SECONDS: Final = 30
_CACHE_SIZE: Final = 2048
"""Size of the cache of answers."""

_REVIEWS: Final = ("v1", "v1beta1")
_IDENTITY: Final = (("name", "name"), ("namespace", "namespace"), ("uid", "UID"))
_encode = msgspec.json.Encoder().encode


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """An object and the requested version."""

    target: webhookclient.Target
    review: str
    desired: str
    object: bytes

    def body(self, uid: str) -> bytes:
        """Return the body of the review."""
        head = _encode({"kind": _KIND, "apiVersion": f"{_GROUP}/{self.review}"})[:-1]
        request = _encode({"uid": uid, "desiredAPIVersion": self.desired})[:-1]
        return b'%b,"request":%b,"objects":[%b]}}' % (head, request, self.object)


class Failure(msgspec.Struct, frozen=True):
    """A failed call, or an invalid answer."""

    message: str


class _Result(msgspec.Struct):
    status: str = ""
    message: str = ""


class _Response(msgspec.Struct, rename="camel"):
    uid: str = ""
    result: _Result = msgspec.field(default_factory=_Result)
    converted_objects: list[dict[str, Any]] = []


class _Review(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    response: _Response | None = None


_decode = msgspec.json.Decoder(_Review).decode


async def ask(question: Question, uid: str, client: webhookclient.WebhookClient) -> Mapping[str, Any] | Failure:
    """Call the webhook, and return the converted object or the failure."""
    try:
        data = await client.post(question.target, question.body(uid), seconds=_SECONDS)
        review = _decode(data)
    except webhookclient.CallError as error:
        return Failure(f"failed: {error}")
    except (msgspec.MsgspecError, RecursionError) as error:
        return Failure(f"failed: couldn't get version/kind; json parse error: {error}")
    return _converted(question, review, uid)


def _converted(question: Question, review: _Review, uid: str) -> Mapping[str, Any] | Failure:
    response = review.response
    if question.review == "v1":
        want, got = f"{_GROUP}/v1, Kind={_KIND}", f"{review.api_version}, Kind={review.kind}"
        if got != want:
            return Failure(f"failed: expected webhook response of {want}, got {got}")
    if response is None:
        return Failure("failed: no response provided")
    if question.review == "v1" and response.uid != uid:
        expected_uid, got = quotation.quote(uid), quotation.quote(response.uid)
        return Failure(f"failed: expected response.uid={expected_uid}, got {got}")
    if response.result.status != "Success":
        problem = f"response.result.status was '{response.result.status}', not 'Success'"
        return Failure(f"failed: {response.result.message or problem}")
    if len(response.converted_objects) != 1:
        return Failure(f"returned {len(response.converted_objects)} objects, expected 1")
    return response.converted_objects[0]


class Conversions(Consultation):
    """Conversions of one definition."""

    __slots__ = ("_kind", "_review", "_target")

    def __init__(self, conversion: Mapping[str, Any], *, kind: str) -> None:
        super().__init__()
        webhook = conversion.get("webhook") or {}
        self._kind = kind
        self._target = webhookclient.target_of(webhook.get("clientConfig") or {})
        accepted: Sequence[str] = webhook.get("conversionReviewVersions") or ()
        self._review = next((each for each in accepted if each in _REVIEWS), "")

    def convert(self, document: Mapping[str, Any], api_version: str) -> dict[str, Any]:
        """Return a document in another version.

        Raises:
            PendingError: the webhook must be called first.
            status.StatusError: the call failed, or the answer is invalid.
        """
        title = f"conversion webhook for {document['apiVersion']}, Kind={self._kind}"
        if not self._review:
            raise status.internal("no supported conversion review versions")
        question = Question(target=self._target, review=self._review, desired=api_version, object=_encode(document))
        (answer,) = self.answers(question)
        if isinstance(answer, Failure):
            # The next request calls the webhook again.
            self.forget(question)
            raise status.internal(f"{title} {answer.message}")
        problem = _problem(document, answer, api_version)
        if problem:
            self.forget(question)
            raise status.internal(f"{title} returned invalid object{problem}")
        return {**answer, "metadata": _metadata(document["metadata"], answer["metadata"])}

    def record_answer(self, question: Hashable, answer: object) -> None:
        if len(self._answers) >= _CACHE_SIZE:
            self._answers.clear()
        super().record_answer(question, answer)


def _problem(original: Mapping[str, Any], converted: Mapping[str, Any], api_version: str) -> str:
    got = converted.get("apiVersion")
    if got != api_version:
        return f" at index 0: invalid groupVersion (expected {api_version}, received {got})"
    if converted.get("kind") != original["kind"]:
        return f" at index 0: invalid kind (expected {original['kind']}, received {converted.get('kind')})"
    if not isinstance(converted.get("metadata"), dict):
        return ": missing metadata in converted object"
    for field, title in _IDENTITY:
        before, after = original["metadata"].get(field, ""), converted["metadata"].get(field, "")
        if before != after:
            return f": must have the same {title}: {before} != {after}"
    return ""


def _metadata(original: Mapping[str, Any], converted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the original metadata with the webhook's labels and annotations, the only parts that it may change."""
    result = dict(original)
    for field in ("labels", "annotations"):
        result.pop(field, None)
        if converted.get(field):
            result[field] = converted[field]
    return result
