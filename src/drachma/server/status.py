"""Status documents: refusals in upstream's reasons and messages.

Everything that serves a request raises :class:`StatusError`; the application answers with its document. The functions
here are named after the reasons that clients check.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from drachma import errors
from drachma.validation import fielderror, path, refusal
from drachma.values import quotation

MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"
"""Message for a write whose resourceVersion is no longer the newest."""


class Resource(Protocol):
    """Resource of a refusal; ``qualified`` is its name in messages."""

    @property
    def group(self) -> str: ...

    @property
    def plural(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def qualified(self) -> str: ...


class StatusError(errors.RequestError):
    """A request is refused; ``document`` is the Status that answers it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__(document.get("message", ""))
        self.document: Final = document

    @property
    def code(self) -> int:
        return int(self.document["code"])

    @property
    def reason(self) -> str:
        return str(self.document.get("reason", ""))


def failure(code: int, reason: str, message: str, *, details: Mapping[str, Any] | None = None) -> StatusError:
    """Return a Status of any reason; empty entries of ``details`` are left out."""
    document: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
    }
    if reason:
        document["reason"] = reason
    if details is not None:
        document["details"] = {key: value for key, value in details.items() if value}
    document["code"] = code
    return StatusError(document)


def success(code: int, *, details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the Status of a request whose answer is no object."""
    document: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        document["details"] = {key: value for key, value in details.items() if value}
    if code:
        document["code"] = code
    return document


def bad_request(message: str) -> StatusError:
    """Return the 400 for a request that cannot be understood."""
    return failure(400, "BadRequest", message)


def unfit(kind: str, version: str, problem: str) -> StatusError:
    """Return the 400 for a document that is not of the required kind."""
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}')


def unauthorized() -> StatusError:
    """Return the 401 for a request without valid credentials."""
    return failure(401, "Unauthorized", "Unauthorized")


def forbidden(resource: Resource, name: str, *, detail: str) -> StatusError:
    """Return the 403 for an action that the user may not take, or that no user may take now."""
    return StatusError(refusal.forbidden(detail, group=resource.group, plural=resource.plural, name=name))


def not_found(resource: Resource, name: str) -> StatusError:
    """Return the 404 for an object."""
    message = f"{resource.qualified} {quotation.quote(name)} not found"
    return failure(404, "NotFound", message, details=_details(resource, name))


def no_such_path() -> StatusError:
    """Return the 404 for a path below a group version that is not served."""
    return failure(404, "NotFound", "the server could not find the requested resource", details={})


def method_not_allowed() -> StatusError:
    """Return the 405 for a path that does not support the method."""
    message = "the server does not allow this method on the requested resource"
    return failure(405, "MethodNotAllowed", message, details={})


def not_acceptable(media_types: Sequence[str]) -> StatusError:
    """Return the 406 for a client that accepts none of the forms."""
    message = f"only the following media types are accepted: {', '.join(media_types)}"
    return failure(406, "NotAcceptable", message)


def not_acceptable_route(media_types: Sequence[str]) -> StatusError:
    """Return the 406 of a path that has none of the accepted media types at all."""
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(media_types)}"
    return failure(406, "NotAcceptable", message, details={})


def already_exists(
    resource: Resource, name: str, *, is_being_deleted: bool = False, is_generated: bool = False
) -> StatusError:
    """Return the 409 for a name that is taken.

    An object with a ``generateName`` counts as one with a generated name.
    """
    message = f"{resource.qualified} {quotation.quote(name)} already exists"
    prefix = "object is being deleted: " if is_being_deleted else ""
    details = _details(resource, name)
    if is_generated:
        message += ", the server was not able to generate a unique name for the object"
        details["retryAfterSeconds"] = 1
    return failure(409, "AlreadyExists", prefix + message, details=details)


def conflict(resource: Resource, name: str, *, detail: str) -> StatusError:
    """Return the 409 for a failed precondition."""
    message = f"Operation cannot be fulfilled on {resource.qualified} {quotation.quote(name)}: {detail}"
    return failure(409, "Conflict", message, details=_details(resource, name))


def conflict_of_kind(resource: Resource, name: str, *, detail: str) -> StatusError:
    """Return the 409 that names the kind instead of the resource, as upstream does for deletions."""
    qualified_kind = refusal.qualified(resource.kind, resource.group)
    message = f"Operation cannot be fulfilled on {qualified_kind} {quotation.quote(name)}: {detail}"
    details = {"name": name, "group": resource.group, "kind": resource.kind}
    return failure(409, "Conflict", message, details=details)


def expired(message: str) -> StatusError:
    """Return the 410 for history that is no longer kept."""
    return failure(410, "Expired", message)


def too_large(detail: str) -> StatusError:
    """Return the 413 for a body, or a part of it, that exceeds a limit."""
    return failure(413, "RequestEntityTooLarge", f"Request entity too large: {detail}")


def unsupported_media_type(media_types: Sequence[str]) -> StatusError:
    """Return the 415 for a body in an unsupported form."""
    accepted = ", ".join(media_types)
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return failure(415, "UnsupportedMediaType", message)


def unsupported_by_route() -> StatusError:
    """Return the 415 of a path that does not read such bodies at all."""
    return failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})


def invalid(kind: str, name: str, *, group: str, causes: Sequence[fielderror.FieldError]) -> StatusError:
    """Return the 422 for an object or options that violate rules; every error is a cause."""
    return StatusError(refusal.invalid(causes, group=group, kind=kind, name=name))


def invalid_patch(value: str, *, detail: str) -> StatusError:
    """Return the 422 for the result of a patch that is not an object of its kind.

    As in upstream, it names no object.
    """
    return invalid("", "", group="", causes=[fielderror.invalid(path.Path("patch"), value, detail)])


def too_many_requests(message: str, *, retry_after: int = 0, causes: Sequence[Mapping[str, str]] = ()) -> StatusError:
    """Return the 429 for a server that is overloaded, or a budget that is exhausted."""
    details = {"causes": list(causes), "retryAfterSeconds": retry_after}
    return failure(429, "TooManyRequests", message, details=details)


def unclassified(message: str) -> StatusError:
    """Return the 500 without a reason, for errors that upstream has no Status for, even if the client is to blame."""
    return failure(500, "", message)


def internal(message: str) -> StatusError:
    """Return the 500 for a defect, or for a failure of another component."""
    return failure(
        500, "InternalError", f"Internal error occurred: {message}", details={"causes": [{"message": message}]}
    )


def unavailable(message: str) -> StatusError:
    """Return the 503 for a server that cannot take the request now."""
    return failure(503, "ServiceUnavailable", message)


def timeout(message: str, *, retry_after: int = 0, causes: Sequence[Mapping[str, str]] = ()) -> StatusError:
    """Return the 504 for a request that took too long; its effect may still happen."""
    return failure(
        504, "Timeout", f"Timeout: {message}", details={"causes": list(causes), "retryAfterSeconds": retry_after}
    )


def future_version(requested: int, *, current: int) -> StatusError:
    """Return the 504 for a resourceVersion that does not exist yet."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return timeout(f"Too large resource version: {requested}, current: {current}", retry_after=1, causes=causes)


def _details(resource: Resource, name: str) -> dict[str, Any]:
    return {"name": name, "group": resource.group, "kind": resource.plural}
