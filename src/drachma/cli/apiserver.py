"""``drachma apiserver``: the Kubernetes API on a data directory, for kubectl and everything else that speaks it."""

import typer

from drachma.api import gates
from drachma.cli import options
from drachma.process import accessfiles, auditfiles, hosting, logs
from drachma.server.wire import serving


def apiserver(
    data: options.Data = None,
    listen: options.Listen = options.DEFAULT_LISTEN,
    kubeconfig_out: options.KubeconfigOut = None,
    feature_gates: options.FeatureGates = "",
    token_auth_file: options.TokenAuthFile = None,
    client_ca_file: options.ClientCaFile = None,
    service_account_key_file: options.ServiceAccountKeyFile = None,
    service_account_signing_key_file: options.ServiceAccountSigningKeyFile = None,
    service_account_issuer: options.ServiceAccountIssuer = None,
    api_audiences: options.ApiAudiences = "",
    enable_bootstrap_token_auth: options.EnableBootstrapTokenAuth = False,
    disable_admission_plugins: options.DisableAdmissionPlugins = "",
    authorization_mode: options.AuthorizationMode = options.DEFAULT_AUTHORIZATION_MODE,
    event_ttl: options.EventTtl = options.DEFAULT_EVENT_TTL,
    audit_policy_file: options.AuditPolicyFile = None,
    audit_log_path: options.AuditLogPath = None,
) -> None:
    """Serve the Kubernetes API.

    TLS certificates and the admin's token are made on the first start and kept in the data directory.
    """
    logs.to_stderr()
    hosting.run(
        hosting.Options(
            data=data,
            address=serving.Address.parse(listen),
            kubeconfig_out=kubeconfig_out,
            gates=gates.Gates.parse(feature_gates, base=gates.SERVED),
            access=accessfiles.AccessOptions(
                token_auth_file=token_auth_file,
                client_ca_file=client_ca_file,
                service_account_key_files=tuple(service_account_key_file or ()),
                service_account_signing_key_file=service_account_signing_key_file,
                service_account_issuers=tuple(service_account_issuer or ()),
                api_audiences=tuple(filter(None, api_audiences.split(","))),
                is_open_to_bootstrap_tokens=enable_bootstrap_token_auth,
                authorization_modes=accessfiles.authorization_modes(authorization_mode),
            ),
            event_ttl=options.seconds(event_ttl, name="--event-ttl"),
            disabled_plugins=options.plugins(disable_admission_plugins),
            audit=auditfiles.AuditOptions(policy_file=audit_policy_file, log_path=audit_log_path),
            announce=typer.echo,
        )
    )
