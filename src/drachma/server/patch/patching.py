"""Application of the three patch types: JSON patch, merge patch and strategic merge patch.

The patch verb calls :func:`apply` with the current document in the version of the request. Errors are raised as
upstream's Status. Minor problems (unknown members of an operation, repeated keys) are returned with the result, for
Warning headers. Server-side apply is in :mod:`drachma.server.ownership.apply`.
"""

from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api.types import model
from drachma.server import documents, status
from drachma.server.decoding import jsonsyntax
from drachma.server.patch import jsonpatch, listorder, mergepatch, strategic
from drachma.server.schema import decodeerrors
from drachma.values import quotation

MAX_OPERATIONS: Final = 10_000
"""Operations of a JSON patch."""

_MEMBERS: Final = frozenset({"op", "path", "from", "value"})
_MAP: Final = "map[string]interface {}"


class Patched(NamedTuple):
    """Result of a patch, not yet validated, and the problems that strict field validation refuses."""

    document: Any
    problems: tuple[str, ...]


def apply(
    document: dict[str, Any], *, content_type: str, body: bytes, schema: model.Object, field_validation: str
) -> Patched:
    """Return the document with the patch applied; the argument is not changed. Raises the Status that refuses the
    patch.

    The result may have any form, because a patch can replace an object by a string. It has to be decoded again.
    """
    try:
        patch = jsonsyntax.read(body)
    except errors.DecodeError:
        raise status.bad_request("invalid JSON patch") from None
    is_checked = field_validation != "Ignore"
    problems = _find_repeated(body, patch) if is_checked else ()
    match content_type:
        case "application/json-patch+json":
            return _json_patch(document, patch, problems=problems, is_checked=is_checked)
        case "application/merge-patch+json":
            return Patched(_merge_patch(document, patch, is_checked=is_checked), problems)
        case "application/strategic-merge-patch+json":
            return Patched(_strategic(document, patch, schema), problems)
    raise ValueError(f"not a patch of documents: {content_type}")


def _json_patch(document: Any, patch: Any, *, problems: tuple[str, ...], is_checked: bool) -> Patched:
    operations = _operations(patch, is_checked=is_checked)
    if len(operations) > MAX_OPERATIONS:
        limit = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise status.too_large(limit)
    unknown = [
        f"unknown field {quotation.quote(f'[{index}].{member}')}"
        for index, operation in enumerate(operations)
        for member in operation
        if member not in _MEMBERS
    ]
    try:
        patched = jsonpatch.apply(document, operations)
    except jsonpatch.NotApplicableError:
        raise unprocessable() from None
    messages = (*unknown, *problems) if is_checked else ()
    return Patched(patched, tuple(f"json patch {problem}" for problem in messages))


def _operations(patch: Any, *, is_checked: bool) -> list[dict[str, Any]]:
    prefix, name = ("error decoding patch: ", "handlers.jsonPatchOp") if is_checked else ("", "jsonpatch.Operation")
    go_type = "[]handlers.jsonPatchOp" if is_checked else "jsonpatch.Patch"
    if patch is None:
        return []
    if not isinstance(patch, list):
        raise status.bad_request(
            f"{prefix}json: cannot unmarshal {decodeerrors.describe(patch)} into Go value of type {go_type}"
        )
    for operation in patch:
        if operation is not None and not isinstance(operation, dict):
            json_type = decodeerrors.describe(operation)
            raise status.bad_request(f"{prefix}json: cannot unmarshal {json_type} into Go value of type {name}")
        if operation and is_checked:
            _check_members(operation)
    return [operation or {} for operation in patch]


def _check_members(operation: dict[str, Any]) -> None:
    for member in ("op", "path", "from"):
        value = operation.get(member)
        if value is not None and not isinstance(value, str):
            mismatch = f"{decodeerrors.describe(value)} into Go struct field jsonPatchOp.{member} of type string"
            raise status.bad_request(f"error decoding patch: json: cannot unmarshal {mismatch}")


def _merge_patch(document: Any, patch: Any, *, is_checked: bool) -> Any:
    if patch is None or not isinstance(patch, dict | list):
        if is_checked and patch is not None:
            raise _not_a_map(patch, prefix="error decoding patch: ")
        raise status.bad_request("Invalid JSON Patch")
    if isinstance(patch, list):
        if is_checked:
            raise _not_a_map(patch, prefix="error decoding patch: ")
        return documents.without_nulls(patch)
    return mergepatch.apply(document, patch)


def _strategic(document: Any, patch: Any, schema: model.Object) -> Any:
    if patch is None:
        patch = {}
    if not isinstance(patch, dict):
        raise _not_a_map(patch)
    try:
        return strategic.apply(document, patch, schema=schema)
    except strategic.MalformedError as error:
        raise status.bad_request(str(error)) from None
    except strategic.UnsupportedError:
        raise unprocessable() from None
    except listorder.NotMergeableError as error:
        raise status.unclassified(str(error)) from None


def unprocessable() -> status.StatusError:
    """Return upstream's answer to a patch that does not fit the document; it gives no reason."""
    message = "the server rejected our request due to an error in our request"
    return status.failure(422, "Invalid", message, details={})


def _not_a_map(patch: Any, *, prefix: str = "") -> status.StatusError:
    json_type = decodeerrors.describe(patch)
    return status.bad_request(f"{prefix}json: cannot unmarshal {json_type} into Go value of type {_MAP}")


def _find_repeated(body: bytes, patch: Any) -> tuple[str, ...]:
    if not jsonsyntax.may_repeat_keys(body, patch):
        return ()
    return tuple(f"duplicate field {quotation.quote(path)}" for path in jsonsyntax.repeated_keys(body))
