"""Types of API documents: fields, how lists and maps merge, protobuf numbers and texts.

Every served kind has a type for each of its versions. The types are data: :func:`get` reads them from the JSON files of
this package, which ``scripts/generate_types.py`` keeps in step with a Kubernetes release.
"""

from typing import Final

from drachma.api.types import loader
from drachma.api.types.model import Field, Free, ListOf, MapOf, Object, Scalar, Type, empty

__all__ = ["Field", "Free", "ListOf", "MapOf", "Object", "Scalar", "Type", "empty", "get"]

_LOADER: Final = loader.Loader(loader.read_package_file)

get = _LOADER.get
