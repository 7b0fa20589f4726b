"""Options in the body of a delete: a DeleteOptions of any group, as JSON, YAML or protobuf.

``server.calls.options`` checks their meaning. Upstream's 400s refuse bodies that cannot be read, documents of another
kind, and values of the wrong type.
"""

from typing import Any, Final

from drachma import errors
from drachma.api import types
from drachma.server import mediatypes, status
from drachma.server.decoding import bodies, jsonsyntax, protobuf, yamlsyntax

_SCHEME: Final = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"
_KIND: Final = "DeleteOptions"
_META: Final = "meta.k8s.io/v1"
_OTHERS: Final = frozenset({"CreateOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions"})
_OPTIONS: Final = types.get(f"meta/v1.{_KIND}")


def read(data: bytes, media_type: str) -> dict[str, Any]:
    """Return the options as a document whose values have the right types."""
    try:
        document = _document(data, media_type)
        _check_type(document)
        return bodies.checked(document, _OPTIONS)
    except errors.DecodeError as error:
        raise status.bad_request(str(error)) from None


def _document(data: bytes, media_type: str) -> dict[str, Any]:
    if media_type == mediatypes.PROTOBUF:
        return protobuf.decode_delete_options(data)
    if media_type == mediatypes.YAML:
        try:
            content = yamlsyntax.read(data).content
        except errors.DecodeError as error:
            raise errors.DecodeError(f"yaml: {error}") from None
    else:
        try:
            content = jsonsyntax.read(data)
        except errors.DecodeError as error:
            raise errors.DecodeError(f"{bodies.NO_TYPE}; json parse error: {error}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise errors.DecodeError(f"{bodies.NO_TYPE}; json parse error: {bodies.not_an_object(content)}")
    return content


def _check_type(document: dict[str, Any]) -> None:
    for field in ("apiVersion", "kind"):
        value = document.get(field)
        if value is not None and not isinstance(value, str):
            raise errors.DecodeError(f"{bodies.NO_TYPE}; json parse error: {bodies.not_text(value, field)}")
    api_version, kind = document.get("apiVersion") or _META, document.get("kind") or _KIND
    if api_version.count("/") > 1:
        raise errors.DecodeError(f"unexpected GroupVersion string: {api_version}")
    if kind == _KIND:
        return
    if api_version == _META and kind in _OTHERS:
        raise errors.DecodeError(f"converting (v1.{kind}) to (v1.{_KIND}): unknown conversion")
    raise errors.DecodeError(f'no kind "{kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"')
