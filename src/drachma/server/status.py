"""Status documents: how the API server says that and why it refuses a request, in upstream's reasons and messages.

Everything that serves a request raises :class:`StatusError`; the application turns it into the answer. The functions
here are named after the reasons that clients test for.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from drachma import errors
from drachma.validation import fielderror, path, refusal
from drachma.values import quotation

MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"
"""What a write is told whose resourceVersion is no longer the newest."""


class Resource(Protocol):
    """What a refusal says about the resource that it concerns; ``qualified`` is how messages name it."""

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
    """A Status of any reason; empty entries of ``details`` are left out."""
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
    """The Status of a request whose answer is no object."""
    document: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        document["details"] = {key: value for key, value in details.items() if value}
    if code:
        document["code"] = code
    return document


def bad_request(message: str) -> StatusError:
    """The request cannot be understood."""
    return failure(400, "BadRequest", message)


def unauthorized() -> StatusError:
    """The request has no credentials, or none that are known."""
    return failure(401, "Unauthorized", "Unauthorized")


def forbidden(resource: Resource, name: str, *, detail: str) -> StatusError:
    """Who asks may not do this, or nobody may do it now."""
    return StatusError(refusal.forbidden(detail, group=resource.group, plural=resource.plural, name=name))


def not_found(resource: Resource, name: str) -> StatusError:
    """There is no object of this name."""
    message = f"{resource.qualified} {quotation.quote(name)} not found"
    return failure(404, "NotFound", message, details=_details(resource, name))


def no_such_path() -> StatusError:
    """The path is below an API group version, and nothing is served there."""
    return failure(404, "NotFound", "the server could not find the requested resource", details={})


def method_not_allowed() -> StatusError:
    """The path exists and does not answer this method."""
    message = "the server does not allow this method on the requested resource"
    return failure(405, "MethodNotAllowed", message, details={})


def not_acceptable(media_types: Sequence[str]) -> StatusError:
    """None of the forms that the client accepts can be given."""
    message = f"only the following media types are accepted: {', '.join(media_types)}"
    return failure(406, "NotAcceptable", message)


def not_acceptable_route(media_types: Sequence[str]) -> StatusError:
    """The same where the path as a whole has nothing to offer."""
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(media_types)}"
    return failure(406, "NotAcceptable", message, details={})


def already_exists(
    resource: Resource, name: str, *, is_being_deleted: bool = False, is_generated: bool = False
) -> StatusError:
    """The name is taken. An object with a ``generateName`` counts as one whose name is generated, even if it is not."""
    message = f"{resource.qualified} {quotation.quote(name)} already exists"
    prefix = "object is being deleted: " if is_being_deleted else ""
    details = _details(resource, name)
    if is_generated:
        message += ", the server was not able to generate a unique name for the object"
        details["retryAfterSeconds"] = 1
    return failure(409, "AlreadyExists", prefix + message, details=details)


def conflict(resource: Resource, name: str, *, detail: str) -> StatusError:
    """A precondition of the write does not hold."""
    message = f"Operation cannot be fulfilled on {resource.qualified} {quotation.quote(name)}: {detail}"
    return failure(409, "Conflict", message, details=_details(resource, name))


def conflict_of_kind(resource: Resource, name: str, *, detail: str) -> StatusError:
    """The same where upstream names the kind in place of the resource: preconditions of a deletion."""
    named = refusal.qualified(resource.kind, resource.group)
    message = f"Operation cannot be fulfilled on {named} {quotation.quote(name)}: {detail}"
    details = {"name": name, "group": resource.group, "kind": resource.kind}
    return failure(409, "Conflict", message, details=details)


def expired(message: str) -> StatusError:
    """The history asked for is no longer kept."""
    return failure(410, "Expired", message)


def too_large(detail: str) -> StatusError:
    """The body, or what is in it, exceeds a limit."""
    return failure(413, "RequestEntityTooLarge", f"Request entity too large: {detail}")


def unsupported_media_type(media_types: Sequence[str]) -> StatusError:
    """The body is in a form that is not read here."""
    accepted = ", ".join(media_types)
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return failure(415, "UnsupportedMediaType", message)


def unsupported_by_route() -> StatusError:
    """The same where the path as a whole reads nothing like it."""
    return failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})


def invalid(kind: str, name: str, *, group: str, causes: Sequence[fielderror.FieldError]) -> StatusError:
    """An object or a set of options breaks rules; every error is a cause."""
    return StatusError(refusal.invalid(causes, group=group, kind=kind, name=name))


def invalid_patch(shown: str, *, detail: str) -> StatusError:
    """The outcome of a patch is not an object of its kind. Upstream leaves out the object's kind and name."""
    return invalid("", "", group="", causes=[fielderror.invalid(path.Path("patch"), shown, detail)])


def too_many_requests(message: str, *, retry_after: int = 0, causes: Sequence[Mapping[str, str]] = ()) -> StatusError:
    """The server is asked for more than it takes at once, or than a budget allows now."""
    details = {"causes": list(causes), "retryAfterSeconds": retry_after}
    return failure(429, "TooManyRequests", message, details=details)


def unclassified(message: str) -> StatusError:
    """An error that upstream has no Status for: code 500 and no reason, even where the client is to blame."""
    return failure(500, "", message)


def internal(message: str) -> StatusError:
    """A defect, or a component below that fails."""
    return failure(
        500, "InternalError", f"Internal error occurred: {message}", details={"causes": [{"message": message}]}
    )


def unavailable(message: str) -> StatusError:
    """The server cannot take the request now; it may later."""
    return failure(503, "ServiceUnavailable", message)


def timeout(message: str, *, retry_after: int = 0, causes: Sequence[Mapping[str, str]] = ()) -> StatusError:
    """The request took too long; what it asked for may still happen."""
    return failure(
        504, "Timeout", f"Timeout: {message}", details={"causes": list(causes), "retryAfterSeconds": retry_after}
    )


def future_version(wanted: int, *, current: int) -> StatusError:
    """A resourceVersion that does not exist yet."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return timeout(f"Too large resource version: {wanted}, current: {current}", retry_after=1, causes=causes)


def _details(resource: Resource, name: str) -> dict[str, Any]:
    return {"name": name, "group": resource.group, "kind": resource.plural}
