"""Configuration file of admission plugins: an AdmissionConfiguration, as kube-apiserver reads it."""

import pathlib
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.server.admission.podsecurity import configuration as pod_security
from drachma.server.decoding import yamlsyntax
from drachma.server.pipeline import phases

_KIND: Final = "AdmissionConfiguration"
_API_VERSIONS: Final = ("apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1")


class _Plugin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    configuration: Any = None
    path: str = ""


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str
    plugins: tuple[_Plugin, ...] = ()


def load(file: pathlib.Path | None) -> pod_security.Configuration:
    """Return the configuration of PodSecurity in a file, or the standard one if there is none.

    Raises:
        errors.InvalidValueError: the file cannot be read, or configures a plugin without configuration.
    """
    if file is None:
        return pod_security.STANDARD
    try:
        return _read(file)
    except OSError as error:
        raise errors.InvalidValueError(f"--admission-control-config-file: {error}") from None
    except (errors.DecodeError, errors.InvalidValueError, msgspec.ValidationError) as error:
        raise errors.InvalidValueError(f"--admission-control-config-file {file}: {error}") from None


def _read(file: pathlib.Path) -> pod_security.Configuration:
    document = msgspec.convert(yamlsyntax.read(file.read_bytes()).content, _Document)
    if document.kind != _KIND or document.api_version not in _API_VERSIONS:
        shown = f"{document.kind} of {document.api_version}"
        raise errors.DecodeError(f"want {_KIND} of {_API_VERSIONS[0]}, got {shown}")
    found = pod_security.STANDARD
    for plugin in document.plugins:
        if plugin.name != phases.POD_SECURITY:
            raise errors.InvalidValueError(f"plugin {plugin.name!r}: only {phases.POD_SECURITY} has a configuration")
        if plugin.configuration is not None:
            found = pod_security.read(plugin.configuration)
        elif plugin.path:
            # As upstream, a relative path starts at the file that names it.
            found = pod_security.read(yamlsyntax.read((file.parent / plugin.path).read_bytes()).content)
    return found
