"""Files that options of the API server name: access, audit policy and log, configuration of admission plugins.

Without options, keys and the admin's token are created in the data directory and kept there.
"""

import datetime as dt
import pathlib
import ssl
from collections.abc import Callable
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.server import audit
from drachma.server.access import accounttokens, authentication, bootstraptokens, signingkeys, tokenfile
from drachma.server.access.access import Access
from drachma.server.admission import pluginnames
from drachma.server.admission.podsecurity import configuration as pod_security
from drachma.server.authorisers import modes
from drachma.server.decoding import yamlsyntax
from drachma.server.pipeline import phases
from drachma.server.reads.reader import Reader
from drachma.server.user import User

_ADMISSION_KIND: Final = "AdmissionConfiguration"
_ADMISSION_VERSIONS: Final = ("apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1")


# Access


class AccessOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of authentication and authorization, under upstream's names; empty ones are generated or left out."""

    token_auth_file: pathlib.Path | None = None
    client_ca_file: pathlib.Path | None = None
    service_account_key_files: tuple[pathlib.Path, ...] = ()
    service_account_signing_key_file: pathlib.Path | None = None
    service_account_issuers: tuple[str, ...] = ()
    api_audiences: tuple[str, ...] = ()
    is_open_to_bootstrap_tokens: bool = False
    authorization_modes: tuple[str, ...] = (modes.NODE, modes.ROLE_BASED)


DEFAULT_ACCESS: Final = AccessOptions()


def authorization_modes(text: str) -> tuple[str, ...]:
    """Return the modes of ``--authorization-mode``. Raises errors.InvalidValueError for unknown ones."""
    names = tuple(name.strip() for name in text.split(","))
    modes.check(names)
    return names


def load_access(
    options: AccessOptions,
    folder: pathlib.Path,
    *,
    store: Reader,
    utc: Callable[[], dt.datetime],
    admin_token: str,
) -> Access:
    """Return the access that the options configure, with a token for the admin.

    Raises:
        errors.RefusedFileError: a file cannot be read, or is invalid.
    """
    if options.client_ca_file is not None:
        _check_authorities(options.client_ca_file)
    issuer = accounttokens.AccountTokens(
        store,
        _keys(options, folder),
        clock=utc,
        issuers=options.service_account_issuers or (accounttokens.ISSUER,),
        audiences=options.api_audiences,
    )
    users: dict[str, User] = {}
    if options.token_auth_file is not None:
        users |= tokenfile.read(options.token_auth_file)
    users[admin_token] = authentication.ADMIN
    # If every user may do everything, anonymous clients may only read health and the version.
    is_open = modes.ALWAYS_ALLOW in options.authorization_modes
    anonymous_paths = authentication.OPEN_PATHS if is_open else None
    bootstrap = bootstraptokens.BootstrapTokens(store, clock=utc) if options.is_open_to_bootstrap_tokens else None
    return Access(
        authenticator=authentication.Authenticator(
            users, issuer, clock=utc, anonymous_paths=anonymous_paths, bootstrap=bootstrap
        ),
        authoriser=modes.make(store, options.authorization_modes),
        issuer=issuer,
    )


def _keys(options: AccessOptions, folder: pathlib.Path) -> signingkeys.Keys:
    trusted = [key for path in options.service_account_key_files for key in signingkeys.load_public(path)]
    if options.service_account_signing_key_file is not None:
        private = signingkeys.load_private(options.service_account_signing_key_file)
    else:
        private = signingkeys.ensure(folder / "pki" / "sa.key")
        if trusted:
            # The signing key is generated, so its tokens are trusted in addition to those of the given keys.
            trusted.append(private.public_key())
    try:
        return signingkeys.make_keys(private, trusted)
    except ValueError as error:
        raise errors.RefusedFileError(f"keys of service accounts: {error}") from error


def _check_authorities(path: pathlib.Path) -> None:
    """Raise errors.RefusedFileError for a file without certificates, before the server starts."""
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_verify_locations(path)
    except OSError as error:
        raise errors.RefusedFileError(f"client authority {path}: cannot be read: {error.strerror or error}") from error


# Audit


class AuditOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the audit log, under the names of upstream's flags; without both files nothing is logged."""

    policy_file: pathlib.Path | None = None
    log_path: str | None = None


def load_audit(options: AuditOptions, *, utc: Callable[[], dt.datetime]) -> tuple[phases.Auditor, ...]:
    """Return the auditors of a server. The log stays open as long as the process lives.

    Raises:
        errors.InvalidValueError: one file is named without the other, or they cannot be used.
    """
    if options.policy_file is None and options.log_path is None:
        return ()
    if options.policy_file is None or options.log_path is None:
        detail = "--audit-policy-file and --audit-log-path go together"
        raise errors.InvalidValueError(detail)
    try:
        text = options.policy_file.read_bytes()
        policy = audit.read(text, title=str(options.policy_file))
        log = audit.Log.open(options.log_path)
    except OSError as error:
        raise errors.InvalidValueError(f"audit: {error}") from None
    return (audit.Auditor(policy, log, clock=utc),)


# Admission


class _PluginForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    configuration: Any = None
    path: str = ""


class _AdmissionForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str
    plugins: tuple[_PluginForm, ...] = ()


def load_admission(file: pathlib.Path | None) -> pod_security.Configuration:
    """Return the configuration of PodSecurity in a file, or the standard one if there is none.

    Raises:
        errors.InvalidValueError: the file cannot be read, or configures a plugin without configuration.
    """
    if file is None:
        return pod_security.STANDARD
    try:
        return _read_admission(file)
    except OSError as error:
        raise errors.InvalidValueError(f"--admission-control-config-file: {error}") from None
    except (errors.DecodeError, errors.InvalidValueError, msgspec.ValidationError) as error:
        raise errors.InvalidValueError(f"--admission-control-config-file {file}: {error}") from None


def _read_admission(file: pathlib.Path) -> pod_security.Configuration:
    document = msgspec.convert(yamlsyntax.read(file.read_bytes()).content, _AdmissionForm)
    if document.kind != _ADMISSION_KIND or document.api_version not in _ADMISSION_VERSIONS:
        actual = f"{document.kind} of {document.api_version}"
        raise errors.DecodeError(f"want {_ADMISSION_KIND} of {_ADMISSION_VERSIONS[0]}, got {actual}")
    configuration = pod_security.STANDARD
    for plugin in document.plugins:
        if plugin.name != pluginnames.POD_SECURITY:
            raise errors.InvalidValueError(
                f"plugin {plugin.name!r}: only {pluginnames.POD_SECURITY} has a configuration"
            )
        if plugin.configuration is not None:
            configuration = pod_security.read(plugin.configuration)
        elif plugin.path:
            # As upstream, a relative path starts at the file that names it.
            configuration = pod_security.read(yamlsyntax.read((file.parent / plugin.path).read_bytes()).content)
    return configuration
