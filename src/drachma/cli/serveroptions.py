"""Options of commands that serve the API: one place for ``drachma apiserver`` and ``drachma up``."""

from typing import Final

import msgspec
import typer

from drachma import errors
from drachma.api import gates
from drachma.bounds import memory
from drachma.cli import limitoptions, options
from drachma.process import accessfiles, auditfiles, hosting, scheduledbackup, storekeeping
from drachma.server.wire import app as asgi
from drachma.server.wire import serving

_NOTHING: Final = asgi.Additions()


class StoreOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the data directory, other than where it is."""

    encryption_provider_config: options.EncryptionProviderConfig = None
    store_reserve: options.StoreReserve = options.DEFAULT_STORE_RESERVE
    backup_dir: options.BackupDir = None
    backup_every: options.BackupEvery = options.DEFAULT_BACKUP_EVERY
    backup_keep: options.BackupKeep = options.DEFAULT_BACKUP_KEEP

    def build(self, *, is_kept: bool) -> storekeeping.Options:
        """Return how the data directory is kept. Raises errors.InvalidValueError for options that need one."""
        needs_data = (
            ("--encryption-provider-config", self.encryption_provider_config),
            ("--backup-dir", self.backup_dir),
        )
        for name, value in needs_data:
            if value is not None and not is_kept:
                raise errors.InvalidValueError(f"{name} {value}: goes with --data only")
        schedule = None
        if self.backup_dir is not None:
            every = options.seconds(self.backup_every, name="--backup-every")
            schedule = scheduledbackup.Schedule(folder=self.backup_dir, every=every, keep=self.backup_keep)
        return storekeeping.Options(
            reserve_bytes=self.store_reserve * 2**20, encryption_file=self.encryption_provider_config, backups=schedule
        )


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the API server, other than its store and its limits."""

    data: options.Data = None
    listen: options.Listen = options.DEFAULT_LISTEN
    kubeconfig_out: options.KubeconfigOut = None
    feature_gates: options.FeatureGates = ""
    enable_first_alpha: options.EnableFirstAlpha = False
    token_auth_file: options.TokenAuthFile = None
    client_ca_file: options.ClientCaFile = None
    service_account_key_file: options.ServiceAccountKeyFile = None
    service_account_signing_key_file: options.ServiceAccountSigningKeyFile = None
    service_account_issuer: options.ServiceAccountIssuer = None
    api_audiences: options.ApiAudiences = ""
    enable_bootstrap_token_auth: options.EnableBootstrapTokenAuth = False
    disable_admission_plugins: options.DisableAdmissionPlugins = ""
    admission_control_config_file: options.AdmissionControlConfigFile = None
    authorization_mode: options.AuthorizationMode = options.DEFAULT_AUTHORIZATION_MODE
    event_ttl: options.EventTtl = options.DEFAULT_EVENT_TTL
    audit_policy_file: options.AuditPolicyFile = None
    audit_log_path: options.AuditLogPath = None
    kubelet_certificate_authority: options.KubeletCertificateAuthority = None
    allow_loopback_nodes: options.AllowLoopbackNodes = False
    cache_bytes: options.CacheBytes = options.DEFAULT_CACHE_BYTES

    def build(
        self,
        store: StoreOptions,
        limits: limitoptions.LimitOptions,
        *,
        bootstrap_kubeconfig_out: options.BootstrapKubeconfigOut = None,
        has_gangs: bool = False,
        additions: asgi.Additions = _NOTHING,
    ) -> hosting.Options:
        """Return how the API is hosted, with additions to what it serves, and limit the caches of this process.

        Raises errors.InvalidValueError for an option that makes no sense.
        """
        memory.PROCESS.limit = options.size_in_bytes(self.cache_bytes, name="--cache-bytes")
        switched = options.with_first_alpha(options.with_gangs(self.feature_gates, has_gangs), self.enable_first_alpha)
        return hosting.Options(
            data=self.data,
            address=serving.Address.parse(self.listen),
            kubeconfig_out=self.kubeconfig_out,
            bootstrap_kubeconfig_out=bootstrap_kubeconfig_out,
            gates=gates.Gates.parse(switched),
            access=accessfiles.AccessOptions(
                token_auth_file=self.token_auth_file,
                client_ca_file=self.client_ca_file,
                service_account_key_files=tuple(self.service_account_key_file or ()),
                service_account_signing_key_file=self.service_account_signing_key_file,
                service_account_issuers=tuple(self.service_account_issuer or ()),
                api_audiences=tuple(filter(None, self.api_audiences.split(","))),
                is_open_to_bootstrap_tokens=self.enable_bootstrap_token_auth or bootstrap_kubeconfig_out is not None,
                authorization_modes=accessfiles.authorization_modes(self.authorization_mode),
            ),
            event_ttl=options.seconds(self.event_ttl, name="--event-ttl"),
            limits=limits.build(),
            disabled_plugins=options.plugins(self.disable_admission_plugins),
            admission_configuration=self.admission_control_config_file,
            audit=auditfiles.AuditOptions(policy_file=self.audit_policy_file, log_path=self.audit_log_path),
            kubelet_certificate_authority=self.kubelet_certificate_authority,
            allows_loopback_nodes=self.allow_loopback_nodes,
            additions=additions,
            keeping=store.build(is_kept=self.data is not None),
            announce=typer.echo,
        )
