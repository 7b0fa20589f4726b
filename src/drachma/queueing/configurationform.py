"""A configuration from its document, in either version: read, completed and checked, or refused with all reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from drachma import errors
from drachma.queueing import configrules, configuration
from drachma.queueing.configuration import Configuration
from drachma.queueing.gates import Gate

KIND: Final = "Configuration"
_NEWER, _OLDER = configuration.API_VERSIONS
_SWITCHED: Final = ("fairSharing", "waitForPodsReady")
"""Parts that the older version has a switch in, ``enable``, and the newer one leaves out."""


class RefusedConfigurationError(errors.InvalidValueError):
    """A configuration that cannot take effect."""


def read(document: Mapping[str, Any]) -> Configuration:
    """The configuration that a document holds, with its defaults.

    Raises:
        RefusedConfigurationError: with all that is wrong with it.
    """
    api_version, kind = document.get("apiVersion"), document.get("kind")
    if api_version not in configuration.API_VERSIONS or kind != KIND:
        choice = " or ".join(configuration.API_VERSIONS)
        raise RefusedConfigurationError(f"kind {kind!r} of {api_version!r}: expected {KIND} of {choice}")
    is_older = api_version == _OLDER
    try:
        completed = configuration.default(configuration.decode(_switched(document) if is_older else document))
        gates = completed.gates
    except (errors.DecodeError, errors.InvalidValueError) as error:
        raise RefusedConfigurationError(str(error)) from None
    if is_older and not _is_enabled(document, "waitForPodsReady"):
        completed = structs.replace(completed, wait_for_pods_ready=None)
    problems = configrules.check(completed, gates=gates)
    if problems:
        raise RefusedConfigurationError("; ".join(map(str, problems)))
    if completed.admission_fair_sharing is not None and gates.on(Gate.ADMISSION_FAIR_SHARING):
        # Differs from upstream: who asks for an order that is not kept had better know.
        raise RefusedConfigurationError(
            "admissionFairSharing: admission by past usage is not carried out here: "
            f"leave it out, or switch off the gate {Gate.ADMISSION_FAIR_SHARING}"
        )
    return completed


def _is_enabled(document: Mapping[str, Any], part: str) -> bool:
    return bool((document.get(part) or {}).get("enable"))


def _switched(document: Mapping[str, Any]) -> dict[str, Any]:
    """The older version without what it switches off; pods block admission there unless it says otherwise."""
    kept = {name: part for name, part in document.items() if name not in _SWITCHED or _is_enabled(document, name)}
    if "waitForPodsReady" in kept:
        told = {name: value for name, value in kept["waitForPodsReady"].items() if value is not None}
        kept["waitForPodsReady"] = {"blockAdmission": True, **told}
    return kept
