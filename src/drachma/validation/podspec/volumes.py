"""Rules for the volumes of a pod: one source each, and the sources that need nothing outside Kubernetes in detail.

Sources of particular storage systems are only asked for what identifies them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, formats, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.podspec import choices, environment
from drachma.values import names

_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_HOST_PATH_TYPES: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_EMPTY_DIR_MODE: Final = 0o1777
_DRIVER_LENGTH: Final = 63
_SHORTEST_TOKEN: Final = 600
_LONGEST_TOKEN: Final = 2**32


def check(volumes: Sequence[Mapping[str, Any]], at: Path) -> Errors:
    """All volumes."""
    seen: set[str] = set()
    for position, volume in enumerate(volumes):
        found = list(_volume(volume, at.item(position), seen=seen))
        if not found:
            seen.add(volume["name"])
        yield from found


def good(volumes: Iterable[Mapping[str, Any]], at: Path) -> dict[str, Mapping[str, Any]]:
    """The volumes that can be mounted, by name: those that nothing is wrong with."""
    known: dict[str, Mapping[str, Any]] = {}
    for volume in volumes:
        if not any(_volume(volume, at, seen=known)):
            known[volume["name"]] = volume
    return known


def _volume(volume: Mapping[str, Any], at: Path, *, seen: Iterable[str]) -> Errors:
    name = volume.get("name", "")
    yield from _source(volume, at)
    yield from choices.label(name, at.child("name"))
    if name in seen:
        yield fielderror.duplicate(at.child("name"), name)


def _source(volume: Mapping[str, Any], at: Path) -> Errors:
    given = [field for field in _SOURCES if volume.get(field) is not None]
    for position, field in enumerate(given):
        if position:
            # Upstream writes two of the names otherwise here.
            shown = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}.get(field, field)
            yield fielderror.forbidden(at.child(shown), "may not specify more than 1 volume type")
        else:
            shown = {"gcePersistentDisk": "persistentDisk"}.get(field, field)
            yield from _SOURCES[field](volume[field], at.child(shown))
    if not given:
        yield fielderror.required(at, "must specify a volume type")


Rule = Callable[[Mapping[str, Any], Path], Errors]


def _needs(*fields: str) -> Rule:
    def check_fields(source: Mapping[str, Any], at: Path) -> Errors:
        for field in fields:
            if not source.get(field):
                yield fielderror.required(at.child(field))

    return check_fields


def _empty_dir(source: Mapping[str, Any], at: Path) -> Errors:
    if str(source.get("sizeLimit", "")).startswith("-"):
        yield fielderror.forbidden(at.child("sizeLimit"), "SizeLimit field must be a valid resource quantity")
    mode = source.get("mode")
    if mode is not None and not 0 <= mode <= _EMPTY_DIR_MODE:
        detail = "must be a number between 0 and 01777 (octal), both inclusive"
        yield fielderror.invalid(at.child("mode"), mode, detail)


def _host_path(source: Mapping[str, Any], at: Path) -> Errors:
    path, kind = source.get("path", ""), source.get("type")
    if not path:
        yield fielderror.required(at.child("path"))
        return
    yield from choices.without_steps_back(path, at.child("path"))
    if kind is not None and kind not in _HOST_PATH_TYPES:
        yield fielderror.not_supported(at.child("type"), rendering.named(kind), _HOST_PATH_TYPES)


def _files(name_field: str) -> Rule:
    def check_files(source: Mapping[str, Any], at: Path) -> Errors:
        if not source.get(name_field):
            yield fielderror.required(at.child(name_field))
        yield from choices.file_mode(source.get("defaultMode"), at.child("defaultMode"))
        for position, item in enumerate(source.get("items") or ()):
            yield from _key_to_path(item, at.child("items").item(position))

    return check_files


def _key_to_path(item: Mapping[str, Any], at: Path) -> Errors:
    for field in ("key", "path"):
        if not item.get(field):
            yield fielderror.required(at.child(field))
    yield from choices.not_reserved(item.get("path", ""), at.child("path"))
    yield from choices.file_mode(item.get("mode"), at.child("mode"))


def _downward(source: Mapping[str, Any], at: Path) -> Errors:
    yield from choices.file_mode(source.get("defaultMode"), at.child("defaultMode"))
    for item in source.get("items") or ():
        # Upstream does not say which of the files it is.
        yield from _downward_file(item, at)


def _downward_file(item: Mapping[str, Any], at: Path) -> Errors:
    if not item.get("path"):
        yield fielderror.required(at.child("path"))
    yield from choices.not_reserved(item.get("path", ""), at.child("path"))
    reference, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if reference is not None:
        yield from environment.check_field(reference, at.child("fieldRef"), supported=environment.VOLUME_FIELDS)
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield fielderror.invalid(at, "resource", detail)
    elif resource is not None:
        yield from environment.check_resource(resource, at.child("resourceFieldRef"), in_volume=True)
    else:
        yield fielderror.required(at, "one of fieldRef and resourceFieldRef is required")
    yield from choices.file_mode(item.get("mode"), at.child("mode"))


def _projected(source: Mapping[str, Any], at: Path) -> Errors:
    yield from choices.file_mode(source.get("defaultMode"), at.child("defaultMode"))
    taken: set[str] = set()
    for position, part in enumerate(source.get("sources") or ()):
        yield from _projection(part, at, position=position, taken=taken)


def _projection(part: Mapping[str, Any], at: Path, *, position: int, taken: set[str]) -> Errors:
    own = at.child("sources").item(position)
    for field in ("secret", "configMap"):
        given = part.get(field)
        if given is None:
            continue
        if not given.get("name"):
            yield fielderror.required(own.child(field, "name"))
        for index, item in enumerate(given.get("items") or ()):
            yield from _key_to_path(item, own.child(field, "items").item(index))
            yield from _new_path(item.get("path", ""), at, shown=given.get("name", ""), taken=taken)
    if part.get("downwardAPI") is not None:
        for item in part["downwardAPI"].get("items") or ():
            yield from _downward_file(item, own.child("downwardAPI"))
            yield from _new_path(item.get("path", ""), at, shown=item.get("path", ""), taken=taken)
    token = part.get("serviceAccountToken")
    if token is not None:
        seconds, path = token.get("expirationSeconds"), own.child("serviceAccountToken", "expirationSeconds")
        if seconds is None:
            yield fielderror.required(path)
        elif seconds < _SHORTEST_TOKEN:
            yield fielderror.invalid(path, seconds, "may not specify a duration less than 10 minutes")
        elif seconds > _LONGEST_TOKEN:
            yield fielderror.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")
        if not token.get("path"):
            yield fielderror.required(at.child("path"))
        else:
            yield from choices.not_reserved(token["path"], own.child("serviceAccountToken", "path"))
            yield from _new_path(token["path"], at, shown=token["path"], taken=taken)
    kinds = sum(value is not None for value in part.values())
    if kinds > 1:
        yield fielderror.forbidden(own, "may not specify more than 1 volume type per source")
    elif not kinds:
        yield fielderror.required(own, "must specify a volume type")


def _new_path(path: str, at: Path, *, shown: str, taken: set[str]) -> Errors:
    if path and path in taken:
        yield fielderror.invalid(at, shown, "conflicting duplicate paths")
    taken.add(path)


def _csi(source: Mapping[str, Any], at: Path) -> Errors:
    driver = source.get("driver", "")
    if not driver:
        yield fielderror.required(at.child("driver"))
    else:
        if len(driver) > _DRIVER_LENGTH:
            yield fielderror.too_long(at.child("driver"), _DRIVER_LENGTH)
        yield from fielderror.problems(at.child("driver"), driver, names.dns1123_subdomain(driver.lower()))
    secret = source.get("nodePublishSecretRef")
    if secret is not None and not secret.get("name"):
        yield fielderror.required(at.child("nodePublishSecretRef", "name"))
    elif secret is not None:
        yield from formats.node_name(secret["name"], at.child("name"))


def _image(source: Mapping[str, Any], at: Path) -> Errors:
    yield from choices.one_of(source.get("pullPolicy", ""), at.child("pullPolicy"), _PULL_POLICIES)


def _nfs(source: Mapping[str, Any], at: Path) -> Errors:
    for field in ("server", "path"):
        if not source.get(field):
            yield fielderror.required(at.child(field))
    if source.get("path") and not source["path"].startswith("/"):
        yield fielderror.invalid(at.child("path"), source["path"], "must be an absolute path")


def _ephemeral(source: Mapping[str, Any], at: Path) -> Errors:
    if source.get("volumeClaimTemplate") is None:
        yield fielderror.required(at.child("volumeClaimTemplate"))


_SOURCES: Final[Mapping[str, Rule]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _needs("repository"),
    "gcePersistentDisk": _needs("pdName"),
    "awsElasticBlockStore": _needs("volumeID"),
    "secret": _files("secretName"),
    "nfs": _nfs,
    "iscsi": _needs("targetPortal", "iqn"),
    "glusterfs": _needs("endpoints", "path"),
    "flocker": _needs(),
    "persistentVolumeClaim": _needs("claimName"),
    "rbd": _needs("monitors", "image"),
    "cinder": _needs("volumeID"),
    "cephfs": _needs("monitors"),
    "quobyte": _needs("registry", "volume"),
    "downwardAPI": _downward,
    "fc": _needs(),
    "flexVolume": _needs("driver"),
    "configMap": _files("name"),
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _needs("diskName", "diskURI"),
    "storageos": _needs(),
    "projected": _projected,
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
"""What a volume can be, in the order in which upstream looks for it."""
