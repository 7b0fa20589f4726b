"""Rules for pod specs, in pods and in the templates of workloads.

Specs are documents with defaults and in normal form: no nulls but those that the server writes, quantities canonical.
Rules that need the metadata of a pod are in :mod:`.pod`.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from drachma.validation import fielderror, rendering, rulenotation
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import Document, Path
from drachma.validation.podspec import containers, resources, volumes
from drachma.values import names, quotation

_UNNAMED: Final = Path("[]")
"""Path without a name, as upstream prints it."""

_CONTAINER_FIELDS: Final = ("initContainers", "containers", "ephemeralContainers")
_LONGEST_SEARCHES: Final = 2048
_SEARCH_LABEL: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH: Final = rf"{_SEARCH_LABEL}(\.{_SEARCH_LABEL})*"
_is_search: Final = re.compile(_SEARCH).fullmatch


class Sort(msgspec.Struct, frozen=True, kw_only=True):
    """Sort of a pod spec: of a pod or a template, and of a mirror pod, which stands for one that kubelet runs alone."""

    is_pod: bool
    is_mirror: bool = False


def check(spec: Document, at: Path, *, is_pod: bool, is_mirror: bool = False) -> list[FieldError]:
    """Return the errors of a pod spec."""
    return _TYPES["PodSpec"](spec, at, Sort(is_pod=is_pod, is_mirror=is_mirror))


def _check_contents(spec: Document, at: Path, sort: Sort) -> Errors:
    """Check volumes, claims and containers."""
    claims = spec.get("resourceClaims") or ()
    own, init = spec.get("containers") or (), spec.get("initContainers") or ()
    mountable: dict[str, Document] = {}
    if spec.get("volumes"):
        errors, mountable = volumes.check(spec["volumes"], at.child("volumes"))
        yield from errors
    if claims and sort.is_mirror:
        yield fielderror.forbidden(_UNNAMED, "static pods do not support resource claims")
    elif claims:
        yield from resources.check_claims(claims, at.child("resourceClaims"))
    pod = containers.Pod(
        volumes=mountable,
        claims=resources.claim_names(claims),
        grace=spec.get("terminationGracePeriodSeconds"),
        restart_policy=spec.get("restartPolicy", ""),
        uses_host_users=spec.get("hostUsers") is not False,
    )
    yield from containers.check(own, at.child("containers"), pod=pod)
    if init:
        yield from containers.check_init(init, at.child("initContainers"), siblings=own, pod=pod)
    if spec.get("ephemeralContainers"):
        place = at.child("ephemeralContainers")
        yield from containers.check_ephemeral(spec["ephemeralContainers"], place, siblings=[*own, *init], pod=pod)
    if spec.get("resources") is not None:
        yield from resources.check_pod(spec, at.child("resources"), claims=pod.claims)


# Hosts and nodes


def _check_host_network(spec: Document, at: Path, sort: Sort) -> Errors:
    if not spec.get("hostNetwork"):
        return
    for position, container in enumerate(spec.get("containers") or ()):
        for index, port in enumerate(container.get("ports") or ()):
            on_host, inside = port.get("hostPort", 0), port.get("containerPort", 0)
            if on_host != inside and (sort.is_pod or on_host):
                place = at.child("containers").item(position).child("ports").item(index).child("hostPort")
                yield fielderror.invalid(place, on_host, "must match `containerPort` when `hostNetwork` is true")


# Names


def _check_service_account(spec: Document, at: Path) -> Errors:
    account, deprecated = spec.get("serviceAccountName", ""), spec.get("serviceAccount", "")
    if deprecated != account:
        detail = f"must be the same as serviceAccountName: {quotation.quote(account)}"
        yield fielderror.invalid(at.child("deprecatedServiceAccount"), deprecated, detail)


def _searches_length(searches: Sequence[str], at: Path) -> Errors:
    if names.byte_length(" ".join(searches)) > _LONGEST_SEARCHES:
        detail = f"must not have more than {_LONGEST_SEARCHES} characters (including spaces) in the search list"
        yield fielderror.invalid(at, rendering.wire(searches), detail)


def _search(search: str, at: Path) -> Errors:
    domain = search.removesuffix(".")
    if search == ".":
        return
    if len(domain) > names.SUBDOMAIN_LENGTH:
        yield fielderror.invalid(at, domain, f"must be no more than {names.SUBDOMAIN_LENGTH} characters")
    if not _is_search(domain):
        detail = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and "
            f"must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            f"'{_SEARCH}')"
        )
        yield fielderror.invalid(at, domain, detail)


# Variables from files


def _check_file_keys(spec: Document, at: Path) -> Errors:
    """Check variables that are read from a file, which must be in an empty directory of the pod."""
    for field in _CONTAINER_FIELDS:
        for position, container in enumerate(spec.get(field) or ()):
            for index, variable in enumerate(container.get("env") or ()):
                reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
                if reference is not None:
                    place = at.child(field).item(position).child("env").item(index)
                    name = reference.get("volumeName", "")
                    yield from _check_directory(name, place.child("valueFrom", "fileKeyRef", "volumeName"), spec=spec)


def _check_directory(name: str, at: Path, *, spec: Document) -> Errors:
    same_name = [volume for volume in spec.get("volumes") or () if volume.get("name", "") == name]
    if not same_name:
        yield fielderror.not_found(at, name)
    elif same_name[-1].get("emptyDir") is None:
        yield fielderror.invalid(at, name, "referenced volume must be of type emptyDir")


_TYPES: Final = rulenotation.load("podspec/spec", globals())
