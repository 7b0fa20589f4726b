"""Rules for the volumes of a pod: each has one source."""

from collections.abc import Sequence
from typing import Final

from drachma.validation import constraints, fielderror, rulenotation
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import Document, Path
from drachma.validation.podspec import environment


def check(volumes: Sequence[Document], at: Path) -> tuple[list[FieldError], dict[str, Document]]:
    """Return the errors of volumes, and the volumes without errors by name: containers can mount them."""
    errors: list[FieldError] = []
    mountable: dict[str, Document] = {}
    for position, volume in enumerate(volumes):
        place, name = at.item(position), volume.get("name", "")
        own = _TYPES["Volume"](volume, place)
        if name in mountable:
            own.append(fielderror.duplicate(place.child("name"), name))
        if not own:
            mountable[name] = volume
        errors += own
    return errors, mountable


# Sources


def _size_limit(amount: str, at: Path) -> Errors:
    if str(amount).startswith("-"):
        yield fielderror.forbidden(at, "SizeLimit field must be a valid resource quantity")


def _check_downward_source(item: Document, at: Path) -> Errors:
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        yield from environment.check_field(field, at.child("fieldRef"), supported=environment.VOLUME_FIELDS)
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield fielderror.invalid(at, "resource", detail)
    elif resource is not None:
        yield from environment.check_resource(resource, at.child("resourceFieldRef"), in_volume=True)
    else:
        yield fielderror.required(at, "one of fieldRef and resourceFieldRef is required")


# Projected volumes


def _check_projections(source: Document, at: Path) -> Errors:
    paths: set[str] = set()
    for position, projection in enumerate(source.get("sources") or ()):
        place = at.child("sources").item(position)
        for field in ("secret", "configMap"):
            if projection.get(field) is not None:
                yield from _project_keys(projection[field], place.child(field), at, paths)
        if projection.get("downwardAPI") is not None:
            for item in projection["downwardAPI"].get("items") or ():
                yield from _TYPES["DownwardAPIVolumeFile"](item, place.child("downwardAPI"))
                yield from _take_path(item.get("path", ""), at, display=item.get("path", ""), paths=paths)
        if projection.get("serviceAccountToken") is not None:
            yield from _project_token(projection["serviceAccountToken"], place.child("serviceAccountToken"), at, paths)
        members = sum(value is not None for value in projection.values())
        if members > 1:
            yield fielderror.forbidden(place, "may not specify more than 1 volume type per source")


def _project_keys(source: Document, at: Path, volume: Path, paths: set[str]) -> Errors:
    if not source.get("name"):
        yield fielderror.required(at.child("name"))
    for index, item in enumerate(source.get("items") or ()):
        yield from _TYPES["KeyToPath"](item, at.child("items").item(index))
        yield from _take_path(item.get("path", ""), volume, display=source.get("name", ""), paths=paths)


def _project_token(token: Document, at: Path, volume: Path, paths: set[str]) -> Errors:
    yield from _TYPES["ServiceAccountTokenProjection"](token, at)
    if not token.get("path"):
        yield fielderror.required(volume.child("path"))
    else:
        yield from constraints.file_path(token["path"], at.child("path"))
        yield from _take_path(token["path"], volume, display=token["path"], paths=paths)


def _take_path(path: str, at: Path, *, display: str, paths: set[str]) -> Errors:
    if path and path in paths:
        yield fielderror.invalid(at, display, "conflicting duplicate paths")
    paths.add(path)


_TYPES: Final = rulenotation.load("podspec/volumes", globals())
