"""Conversion of documents to the views of this package, and of views back to documents."""

from typing import Any, TypeVar

import msgspec

from drachma import errors
from drachma.api import codec, hooks
from drachma.api.struct import Struct

_ViewT = TypeVar("_ViewT", bound=Struct)


def decode(document: Any, view: type[_ViewT]) -> _ViewT:
    """Return the view of a document. Raises errors.DecodeError, which names the object and the field."""
    try:
        return msgspec.convert(document, view, dec_hook=hooks.decode)
    except (msgspec.ValidationError, errors.InvalidValueError) as error:
        raise errors.DecodeError(f"{codec.title(document)}: {error}") from None


def document(part: Struct) -> dict[str, Any]:
    """Return a view as plain dicts, lists and scalars, without absent fields."""
    plain: dict[str, Any] = msgspec.json.decode(codec.encode_part(part))
    return plain
