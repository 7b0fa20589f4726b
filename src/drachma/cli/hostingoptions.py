"""What commands that serve the API make of their options: one place for ``drachma apiserver`` and ``drachma up``."""

import pathlib
from typing import Final

import typer

from drachma import errors
from drachma.api import gates
from drachma.bounds import memory
from drachma.cli import options
from drachma.process import accessfiles, auditfiles, hosting, scheduledbackup, storekeeping
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
    enable_first_alpha: bool,
    token_auth_file: pathlib.Path | None,
    client_ca_file: pathlib.Path | None,
    service_account_key_file: list[pathlib.Path] | None,
    service_account_signing_key_file: pathlib.Path | None,
    service_account_issuer: list[str] | None,
    api_audiences: str,
    disable_admission_plugins: str,
    admission_control_config_file: pathlib.Path | None,
    authorization_mode: str,
    enable_bootstrap_token_auth: bool,
    event_ttl: str,
    audit_policy_file: pathlib.Path | None,
    audit_log_path: str | None,
    kubelet_certificate_authority: pathlib.Path | None,
    allow_loopback_nodes: bool,
    cache_bytes: str,
    keeping: storekeeping.Options,
    limits: hosting.Limits,
    additions: asgi.Additions = _NOTHING,
) -> hosting.Options:
    """How the API is hosted, with what else it serves; InvalidValueError for an option that makes no sense.

    Sets the limit on the caches of this process as well.
    """
    memory.PROCESS.limit = options.size_in_bytes(cache_bytes, name="--cache-bytes")
    return hosting.Options(
        data=data,
        address=serving.Address.parse(listen),
        kubeconfig_out=kubeconfig_out,
        bootstrap_kubeconfig_out=bootstrap_kubeconfig_out,
        gates=gates.Gates.parse(options.with_first_alpha(feature_gates, enable_first_alpha)),
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
        admission_configuration=admission_control_config_file,
        audit=auditfiles.AuditOptions(policy_file=audit_policy_file, log_path=audit_log_path),
        kubelet_certificate_authority=kubelet_certificate_authority,
        allows_loopback_nodes=allow_loopback_nodes,
        additions=additions,
        keeping=keeping,
        announce=typer.echo,
    )


def keeping(
    data: pathlib.Path | None,
    *,
    encryption_provider_config: pathlib.Path | None,
    store_reserve: int,
    backup_dir: pathlib.Path | None,
    backup_every: str,
    backup_keep: int,
) -> storekeeping.Options:
    """Return how the data directory is kept. Raises errors.InvalidValueError for options that need one."""
    for name, value in (("--encryption-provider-config", encryption_provider_config), ("--backup-dir", backup_dir)):
        if value is not None and data is None:
            raise errors.InvalidValueError(f"{name} {value}: goes with --data only")
    schedule = None
    if backup_dir is not None:
        every = options.seconds(backup_every, name="--backup-every")
        schedule = scheduledbackup.Schedule(folder=backup_dir, every=every, keep=backup_keep)
    return storekeeping.Options(
        reserve_bytes=store_reserve * 2**20, encryption_file=encryption_provider_config, backups=schedule
    )
