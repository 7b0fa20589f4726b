"""What commands that serve the API make of their options: one place for ``drachma apiserver`` and ``drachma up``."""

import pathlib
from typing import Final

import typer

from drachma.api import gates
from drachma.cli import options
from drachma.process import accessfiles, auditfiles, hosting
from drachma.server.wire import app as asgi
from drachma.server.wire import serving

_NOTHING: Final = asgi.Additions()


def build(
    *,
    data: pathlib.Path | None,
    listen: str,
    kubeconfig_out: pathlib.Path | None,
    bootstrap_kubeconfig_out: pathlib.Path | None = None,
    feature_gates: str,
    token_auth_file: pathlib.Path | None,
    client_ca_file: pathlib.Path | None,
    service_account_key_file: list[pathlib.Path] | None,
    service_account_signing_key_file: pathlib.Path | None,
    service_account_issuer: list[str] | None,
    api_audiences: str,
    disable_admission_plugins: str,
    authorization_mode: str,
    enable_bootstrap_token_auth: bool,
    event_ttl: str,
    audit_policy_file: pathlib.Path | None,
    audit_log_path: str | None,
    limits: hosting.Limits,
    additions: asgi.Additions = _NOTHING,
) -> hosting.Options:
    """How the API is hosted, with what else it serves; InvalidValueError for an option that makes no sense."""
    return hosting.Options(
        data=data,
        address=serving.Address.parse(listen),
        kubeconfig_out=kubeconfig_out,
        bootstrap_kubeconfig_out=bootstrap_kubeconfig_out,
        gates=gates.Gates.parse(feature_gates, base=gates.SERVED),
        access=accessfiles.AccessOptions(
            token_auth_file=token_auth_file,
            client_ca_file=client_ca_file,
            service_account_key_files=tuple(service_account_key_file or ()),
            service_account_signing_key_file=service_account_signing_key_file,
            service_account_issuers=tuple(service_account_issuer or ()),
            api_audiences=tuple(filter(None, api_audiences.split(","))),
            is_open_to_bootstrap_tokens=enable_bootstrap_token_auth or bootstrap_kubeconfig_out is not None,
            authorization_modes=accessfiles.authorization_modes(authorization_mode),
        ),
        event_ttl=options.seconds(event_ttl, name="--event-ttl"),
        limits=limits,
        disabled_plugins=options.plugins(disable_admission_plugins),
        audit=auditfiles.AuditOptions(policy_file=audit_policy_file, log_path=audit_log_path),
        additions=additions,
        announce=typer.echo,
    )
