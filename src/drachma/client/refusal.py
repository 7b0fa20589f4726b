"""Conversion of Status documents to the errors that callers catch.

Both clients use it, so a refusal is the same error on either. The reason decides. If it is missing or callers do not
distinguish it, the code decides.

A patch names the object that it means by its uid. If another object has the name, servers answer that the field cannot
be changed; for callers this is a conflict, as for every other write.
"""

from collections.abc import Mapping
from typing import Any, Final

from drachma import errors

_BY_REASON: Final[Mapping[str, type[errors.RefusedError]]] = {
    "AlreadyExists": errors.ObjectExistsError,
    "BadRequest": errors.BadRequestError,
    "Conflict": errors.ObjectConflictError,
    "Expired": errors.HistoryGoneError,
    "Forbidden": errors.ForbiddenError,
    "Gone": errors.HistoryGoneError,
    "Invalid": errors.InvalidObjectError,
    "NotFound": errors.ObjectNotFoundError,
    "TooManyRequests": errors.ThrottledError,
    "Unauthorized": errors.UnauthorizedError,
}
_BY_CODE: Final[Mapping[int, type[errors.RefusedError]]] = {
    400: errors.BadRequestError,
    401: errors.UnauthorizedError,
    403: errors.ForbiddenError,
    404: errors.ObjectNotFoundError,
    409: errors.ObjectConflictError,
    410: errors.HistoryGoneError,
    422: errors.InvalidObjectError,
    429: errors.ThrottledError,
}


def error(document: Mapping[str, Any]) -> errors.RefusedError:
    """Return the error for a Status of failure."""
    code = int(document.get("code") or 0)
    fallback = errors.ServerFaultError if code >= 500 else errors.RefusedError
    kind = _BY_REASON.get(str(document.get("reason") or "")) or _BY_CODE.get(code, fallback)
    if kind is errors.InvalidObjectError and _means_another(document):
        kind = errors.ObjectConflictError
    return kind(document)


def _means_another(document: Mapping[str, Any]) -> bool:
    """Return True if a patch was refused because the object has another uid than the patch names."""
    causes = (document.get("details") or {}).get("causes") or ()
    return any(
        cause.get("field") == "metadata.uid" and cause.get("message", "").endswith("field is immutable")
        for cause in causes
    )


def plain_error(code: int, text: str) -> errors.RefusedError:
    """Return the error for a failed answer that is not a Status, as proxies and health checks give."""
    excerpt = " ".join(text.split())[:200]
    message = f"the server answered with code {code}" + (f": {excerpt}" if excerpt else "")
    return error({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code})
