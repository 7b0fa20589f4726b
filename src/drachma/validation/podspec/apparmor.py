"""AppArmor profiles of pods and containers: fields, and the annotations that clients used before there were fields."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from drachma.validation import fielderror
from drachma.validation.fielderror import Errors
from drachma.validation.path import METADATA, SPEC, Document, Path
from drachma.validation.podspec import security
from drachma.values import quotation

PREFIX: Final = "container.apparmor.security.beta.kubernetes.io/"
"""Prefix of the annotations; the name of a container stands behind it."""

DEPRECATION: Final = 'deprecated since v1.30; use the "appArmorProfile" field instead'

_FIELD: Final = "appArmorProfile"
_TYPES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_LOCALHOST_PREFIX: Final = "localhost/"
_TYPES_BY_ANNOTATION: Final = {"runtime/default": "RuntimeDefault", "unconfined": "Unconfined"}
_CONTAINER_FIELDS: Final = ("initContainers", "containers", "ephemeralContainers")
_ANNOTATIONS: Final = METADATA.child("annotations")


def check_annotations(annotations: Mapping[str, str], spec: Document) -> Errors:
    """Yield what is wrong with the annotations of a pod."""
    names = {container.get("name") for container, _ in _containers(spec)}
    for key in sorted(key for key in annotations if key.startswith(PREFIX)):
        name, text = key.removeprefix(PREFIX), annotations[key]
        if name not in names:
            yield fielderror.invalid(_ANNOTATIONS.key(key), name, "container not found")
        if text and text not in _TYPES_BY_ANNOTATION and not text.startswith(_LOCALHOST_PREFIX):
            detail = f"invalid AppArmor profile name: {quotation.quote(text)}"
            yield fielderror.invalid(_ANNOTATIONS.key(key), text, detail)


def check_match(annotations: Mapping[str, str], spec: Document) -> Errors:
    """Yield fields of a new pod that say something else than the annotations do."""
    if _is_for_windows(spec):
        return
    of_pod = _profile(spec)
    for container, at in _containers(spec):
        text = annotations.get(f"{PREFIX}{container.get('name', '')}")
        profile = _profile(container) or of_pod
        if text is None or profile is None:
            continue
        path, kind = at.child("securityContext", _FIELD), profile.get("type")
        is_local = text.startswith(_LOCALHOST_PREFIX)
        if kind in _TYPES and kind != ("Localhost" if is_local else _TYPES_BY_ANNOTATION.get(text)):
            yield fielderror.forbidden(path.child("type"), "apparmor type in annotation and field must match")
        elif kind == "Localhost" and text.removeprefix(_LOCALHOST_PREFIX) != profile.get("localhostProfile"):
            detail = "apparmor profile in annotation and field must match"
            yield fielderror.forbidden(path.child("localhostProfile"), detail)


def copy_annotations(annotations: Mapping[str, str], spec: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the spec with the profiles of annotations in fields, and the annotations that need a warning."""
    if _is_for_windows(spec) or not any(key.startswith(PREFIX) for key in annotations):
        return spec, []
    of_pod, warned, changed = _profile(spec), [], dict(spec)
    for field in _CONTAINER_FIELDS:
        containers = []
        for container in spec.get(field) or ():
            key = f"{PREFIX}{container.get('name', '')}"
            result = container
            if key in annotations and _profile(container) is None:
                profile = read_annotation(annotations[key])
                if profile is None or profile != of_pod:
                    warned.append(key)
                if profile is not None and profile != of_pod:
                    security = {**(container.get("securityContext") or {}), _FIELD: profile}
                    result = {**container, "securityContext": security}
            containers.append(result)
        if containers:
            changed[field] = containers
    return changed, warned


def warn_of_annotations(annotations: Mapping[str, str], container: Document, *, spec: Document) -> Iterator[str]:
    """Yield the annotation of a container in a template, unless a field says the same."""
    key = f"{PREFIX}{container.get('name', '')}"
    if key in annotations and _profile(container) is None:
        of_pod = _profile(spec)
        if of_pod is None or read_annotation(annotations[key]) != of_pod:
            yield key


def read_annotation(text: str) -> dict[str, Any] | None:
    """Return the profile that an annotation names, or None if it names none that a field can have."""
    if text in _TYPES_BY_ANNOTATION:
        return {"type": _TYPES_BY_ANNOTATION[text]}
    if not text.startswith(_LOCALHOST_PREFIX):
        return None
    profile = {"type": "Localhost", "localhostProfile": text.removeprefix(_LOCALHOST_PREFIX)}
    return None if security.TYPES["AppArmorProfile"](profile, SPEC) else profile


def _containers(spec: Document) -> Iterator[tuple[Document, Path]]:
    for field in _CONTAINER_FIELDS:
        for position, container in enumerate(spec.get(field) or ()):
            yield container, SPEC.child(field).item(position)


def _profile(owner: Document) -> Document | None:
    profile: Document | None = (owner.get("securityContext") or {}).get(_FIELD)
    return profile


def _is_for_windows(spec: Document) -> bool:
    return bool((spec.get("os") or {}).get("name") == "windows")
