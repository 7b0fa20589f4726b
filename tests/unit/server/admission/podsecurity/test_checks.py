"""Controls of the Pod Security Standards: what they refuse from which version on, and in which words."""

import itertools
from typing import Any

import pytest

from drachma.server.admission.podsecurity import checks, podviews
from drachma.server.admission.podsecurity.checks import Evaluation, evaluate
from drachma.server.admission.podsecurity.policies import LATEST, Level, LevelVersion

APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
STRICT = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
STRICT_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


_OUTSIDE = ("ports", "lifecycle", "livenessProbe", "startupProbe")


def container(name: str = "c", **fields: Any) -> dict[str, Any]:
    """Container with these fields in its security context, but for probes, ports and the like."""
    others: dict[str, Any] = {field: fields.pop(field) for field in _OUTSIDE if field in fields}
    return {"name": name, "image": "x", "securityContext": fields, **others}


def pod(*containers: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any) -> podviews.PodView:
    return podviews.view({"annotations": annotations}, {"containers": list(containers or (container(),)), **spec})


def restricted(*containers: dict[str, Any], **spec: Any) -> podviews.PodView:
    """Pod that complies with the restricted level but for what is given."""
    strict = [
        {**each, "securityContext": {**STRICT, **each["securityContext"]}} for each in containers or (container(),)
    ]
    security = {**STRICT_POD, **spec.pop("securityContext", {})}
    return pod(*strict, securityContext=security, **spec)


def evaluation(view: podviews.PodView, level: Level, minor: int = LATEST) -> Evaluation:
    return evaluate(view, LevelVersion(level, minor))


def texts(view: podviews.PodView, level: Level, minor: int = LATEST) -> list[str]:
    return list(map(str, evaluation(view, level, minor).violations))


def security(**fields: Any) -> dict[str, Any]:
    return {"securityContext": fields}


PROBE = {"httpGet": {"host": "b.example"}, "tcpSocket": {"host": "a.example"}}


@pytest.mark.parametrize(
    ("view", "want"),
    [
        pytest.param(pod(), [], id="plain"),
        pytest.param(
            pod(container(appArmorProfile={"type": "Unconfined"})),
            ['forbidden AppArmor profile (container "c" must not set AppArmor profile type to "Unconfined")'],
            id="apparmor-container",
        ),
        pytest.param(
            pod(
                container("a", appArmorProfile={"type": "Unconfined"}),
                container("b", appArmorProfile={"type": "Localhost"}),
                container("c", appArmorProfile={"type": "Other"}),
                **security(appArmorProfile={"type": "Unconfined"}),
                annotations={f"{APP_ARMOR}z": "unconfined", f"{APP_ARMOR}a": "x", f"{APP_ARMOR}b": "localhost/p"},
            ),
            [
                (
                    'forbidden AppArmor profiles (pod and containers "a", "c" and annotations must not set AppArmor '
                    f'profile type to "Other", "Unconfined", "{APP_ARMOR}a="x"", "{APP_ARMOR}z="unconfined"")'
                )
            ],
            id="apparmor-everywhere",
        ),
        pytest.param(
            pod(annotations={f"{APP_ARMOR}c": "unconfined", f"{APP_ARMOR}d": "", f"{APP_ARMOR}e": "runtime/default"}),
            [
                (
                    "forbidden AppArmor profile (annotation must not set AppArmor profile type to "
                    f'"{APP_ARMOR}c="unconfined"")'
                )
            ],
            id="apparmor-annotation",
        ),
        pytest.param(
            pod(
                container("a", capabilities={"add": ["NET_RAW", "CHOWN"]}),
                container("b", capabilities={"add": ["ALL"], "drop": ["KILL"]}),
                container("c", capabilities={"add": ["SETUID"]}),
            ),
            [
                (
                    'non-default capabilities (containers "a", "b" must not include "ALL", "NET_RAW" in '
                    "securityContext.capabilities.add)"
                )
            ],
            id="capabilities",
        ),
        pytest.param(
            pod(hostIPC=True, hostPID=True, hostNetwork=True),
            ["host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)"],
            id="host-namespaces",
        ),
        pytest.param(
            pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}, {"name": "w", "emptyDir": {}}]),
            ['hostPath volumes (volume "v")'],
            id="host-path",
        ),
        pytest.param(
            pod(volumes=[{"name": "w", "hostPath": {}}, {"name": "v", "hostPath": {}}]),
            ['hostPath volumes (volumes "w", "v")'],
            id="host-paths-in-order",
        ),
        pytest.param(
            pod(container("a", ports=[{"hostPort": 90}, {"hostPort": 0}, {"containerPort": 1}])),
            ['hostPort (container "a" uses hostPort 90)'],
            id="host-port",
        ),
        pytest.param(
            pod(container("b", ports=[{"hostPort": 90}]), container("a", ports=[{"hostPort": 100}, {"hostPort": 90}])),
            ['hostPort (containers "b", "a" use hostPorts 100, 90)'],
            id="host-ports-sort-as-texts",
        ),
        pytest.param(
            pod(container("b", livenessProbe=PROBE), container("a", lifecycle={"preStop": PROBE})),
            ['probe or lifecycle host (containers "a", "b" use probe or lifecycle hosts "a.example", "b.example")'],
            id="probe-hosts",
        ),
        pytest.param(
            pod(container(startupProbe={"tcpSocket": {"host": "h", "port": 1}}, livenessProbe={"exec": {}})),
            ['probe or lifecycle host (container "c" uses probe or lifecycle host "h")'],
            id="probe-host",
        ),
        pytest.param(
            pod(
                container("a", privileged=True),
                initContainers=[container("i", privileged=True), container("j", privileged=False)],
                ephemeralContainers=[container("e", privileged=True)],
            ),
            ['privileged (containers "i", "a", "e" must not set securityContext.privileged=true)'],
            id="privileged-containers-of-all-kinds",
        ),
        pytest.param(
            pod(container(procMount="Unmasked"), container("d", procMount="Default")),
            ['procMount (container "c" must not set securityContext.procMount to "Unmasked")'],
            id="proc-mount",
        ),
        pytest.param(pod(container(procMount="Unmasked"), hostUsers=False), [], id="proc-mount-of-a-user-namespace"),
        pytest.param(
            pod(container(seLinuxOptions={"type": "spc_t"}), **security(seLinuxOptions={"type": "a_t", "level": "s0"})),
            [
                (
                    'seLinuxOptions (pod and container "c" set forbidden securityContext.seLinuxOptions: '
                    'types "a_t", "spc_t")'
                )
            ],
            id="selinux-types",
        ),
        pytest.param(
            pod(container(seLinuxOptions={"user": "u", "role": "r", "type": "x"})),
            [
                (
                    'seLinuxOptions (container "c" set forbidden securityContext.seLinuxOptions: type "x"; '
                    "user may not be set; role may not be set)"
                )
            ],
            id="selinux-user-and-role",
        ),
        pytest.param(pod(container(seLinuxOptions={"type": "container_engine_t"})), [], id="selinux-engine"),
        pytest.param(
            pod(
                container("a", seccompProfile={"type": "Unconfined"}), **security(seccompProfile={"type": "Unconfined"})
            ),
            ['seccompProfile (pod and container "a" must not set securityContext.seccompProfile.type to "Unconfined")'],
            id="seccomp",
        ),
        pytest.param(
            pod(**security(sysctls=[{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_rmem"}, {"name": "a"}])),
            ["forbidden sysctls (kernel.msgmax, a)"],
            id="sysctls",
        ),
        pytest.param(
            pod(container(windowsOptions={"hostProcess": True}), **security(windowsOptions={"hostProcess": True})),
            ['hostProcess (pod and container "c" must not set securityContext.windowsOptions.hostProcess=true)'],
            id="host-process",
        ),
    ],
)
def test_baseline(view: podviews.PodView, want: list[str]) -> None:
    assert texts(view, Level.BASELINE) == want


@pytest.mark.parametrize(
    ("view", "want"),
    [
        pytest.param(restricted(), [], id="strict"),
        pytest.param(
            pod(container("a"), {"name": "b"}),
            [
                (
                    'allowPrivilegeEscalation != false (containers "a", "b" must set '
                    "securityContext.allowPrivilegeEscalation=false)"
                ),
                'unrestricted capabilities (containers "a", "b" must set securityContext.capabilities.drop=["ALL"])',
                'runAsNonRoot != true (pod or containers "a", "b" must set securityContext.runAsNonRoot=true)',
                (
                    'seccompProfile (pod or containers "a", "b" must set securityContext.seccompProfile.type to '
                    '"RuntimeDefault" or "Localhost")'
                ),
            ],
            id="plain",
        ),
        pytest.param(
            restricted(container(capabilities={"add": ["NET_BIND_SERVICE", "CHOWN"], "drop": ["NET_RAW"]})),
            [
                (
                    'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]; '
                    'container "c" must not include "CHOWN" in securityContext.capabilities.add)'
                )
            ],
            id="capabilities",
        ),
        pytest.param(
            restricted(container(procMount="Unmasked"), hostUsers=False),
            ['procMount (container "c" must not set securityContext.procMount to "Unmasked")'],
            id="proc-mount-of-a-user-namespace",
        ),
        pytest.param(
            restricted(
                volumes=[
                    *({"name": f"v{n}", source: {}} for n, source in enumerate(("nfs", "secret", "hostPath", "image"))),
                    {"name": "w", "future": {}},
                ]
            ),
            [
                (
                    'restricted volume types (volumes "v0", "v2", "w" use restricted volume types '
                    '"hostPath", "nfs", "unknown")'
                )
            ],
            id="volumes",
        ),
        pytest.param(
            restricted(volumes=[{"name": "v", "gitRepo": {}}]),
            ['restricted volume types (volume "v" uses restricted volume type "gitRepo")'],
            id="volume",
        ),
        pytest.param(
            restricted(container("a", runAsNonRoot=False), container("b"), securityContext={"runAsNonRoot": False}),
            ['runAsNonRoot != true (pod and container "a" must not set securityContext.runAsNonRoot=false)'],
            id="root-by-request",
        ),
        pytest.param(
            restricted(container("a", runAsNonRoot=True), container("b"), securityContext={"runAsNonRoot": None}),
            ['runAsNonRoot != true (pod or container "b" must set securityContext.runAsNonRoot=true)'],
            id="root-by-omission",
        ),
        pytest.param(
            restricted(container(runAsUser=0), container("d", runAsUser=1), securityContext={"runAsUser": 0}),
            ['runAsUser=0 (pod and container "c" must not set runAsUser=0)'],
            id="user-root",
        ),
        pytest.param(
            restricted(container(runAsUser=0, runAsNonRoot=False), hostUsers=False), [], id="root-of-a-user-namespace"
        ),
        pytest.param(
            restricted(container(seccompProfile={"type": "Unconfined"})),
            ['seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")'],
            id="seccomp-by-request",
        ),
        pytest.param(
            restricted(
                container("a", seccompProfile={"type": "Localhost"}),
                container("b"),
                securityContext={"seccompProfile": None},
            ),
            [
                (
                    'seccompProfile (pod or container "b" must set securityContext.seccompProfile.type to '
                    '"RuntimeDefault" or "Localhost")'
                )
            ],
            id="seccomp-by-omission",
        ),
        pytest.param(pod(os={"name": "windows"}, **security(runAsNonRoot=True)), [], id="windows"),
    ],
)
def test_restricted(view: podviews.PodView, want: list[str]) -> None:
    assert texts(view, Level.RESTRICTED) == want


def test_seccomp_annotations_of_old_versions() -> None:
    annotations = {
        "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
        f"{SECCOMP}a": "x",
        f"{SECCOMP}b": "docker/default",
        f"{SECCOMP}other": "unconfined",
    }
    view = pod(container("a"), container("b"), annotations=annotations)
    assert texts(view, Level.BASELINE, 18) == [
        f'seccompProfile (forbidden annotations {SECCOMP}a="x", seccomp.security.alpha.kubernetes.io/pod="unconfined")'
    ]
    assert texts(view, Level.BASELINE, 19) == []


def _sysctl(name: str) -> podviews.PodView:
    return restricted(securityContext={"sysctls": [{"name": name}]})


@pytest.mark.parametrize(
    ("view", "level", "since", "until"),
    [
        pytest.param(pod(container(livenessProbe=PROBE)), Level.BASELINE, 34, LATEST, id="probe-hosts"),
        pytest.param(pod(container(procMount="x"), hostUsers=False), Level.BASELINE, 0, 34, id="proc-mount"),
        pytest.param(
            restricted(container(procMount="x"), hostUsers=False), Level.RESTRICTED, 0, LATEST,
            id="proc-mount-restricted",
        ),
        pytest.param(
            pod(container(seLinuxOptions={"type": "container_engine_t"})), Level.BASELINE, 0, 30, id="selinux"
        ),
        pytest.param(pod(**security(seccompProfile={"type": "x"})), Level.BASELINE, 19, LATEST, id="seccomp"),
        pytest.param(_sysctl("net.ipv4.tcp_syncookies"), Level.RESTRICTED, 1, 0, id="sysctl-always"),
        pytest.param(_sysctl("net.ipv4.ip_local_reserved_ports"), Level.RESTRICTED, 0, 26, id="sysctl-1.27"),
        pytest.param(_sysctl("net.ipv4.tcp_keepalive_time"), Level.RESTRICTED, 0, 28, id="sysctl-1.29"),
        pytest.param(_sysctl("net.ipv4.tcp_wmem"), Level.RESTRICTED, 0, 31, id="sysctl-1.32"),
        pytest.param(_sysctl("net.ipv4.tcp_notsent_lowat"), Level.RESTRICTED, 0, 36, id="sysctl-1.37"),
        pytest.param(
            restricted(container(allowPrivilegeEscalation=True)), Level.RESTRICTED, 8, LATEST, id="escalation"
        ),
        pytest.param(
            restricted(container(allowPrivilegeEscalation=True), os={"name": "windows"}), Level.RESTRICTED, 8, 24,
            id="escalation-on-windows",
        ),
        pytest.param(restricted(container(capabilities={})), Level.RESTRICTED, 22, LATEST, id="capabilities"),
        pytest.param(
            restricted(container(capabilities={}), os={"name": "windows"}), Level.RESTRICTED, 22, 24,
            id="capabilities-on-windows",
        ),
        pytest.param(
            restricted(securityContext={"seccompProfile": None}), Level.RESTRICTED, 19, LATEST, id="seccomp-required"
        ),
        pytest.param(
            restricted(os={"name": "windows"}, securityContext={"seccompProfile": None}), Level.RESTRICTED, 19, 24,
            id="seccomp-on-windows",
        ),
        pytest.param(
            restricted(hostUsers=False, securityContext={"runAsNonRoot": None}), Level.RESTRICTED, 0, 34, id="non-root"
        ),
        pytest.param(restricted(container(runAsUser=0)), Level.RESTRICTED, 23, LATEST, id="user-root"),
        pytest.param(
            restricted(container(runAsUser=0), hostUsers=False), Level.RESTRICTED, 23, 34,
            id="user-root-of-a-user-namespace",
        ),
    ],
)  # fmt: skip
def test_versions(view: podviews.PodView, level: Level, since: int, until: int) -> None:
    """Exactly the versions from ``since`` to ``until`` refuse the pod."""
    refusing = [minor for minor in (*range(checks.NEWEST + 3), LATEST) if evaluation(view, level, minor).violations]
    assert refusing == [minor for minor in (*range(checks.NEWEST + 3), LATEST) if since <= minor <= until]


def test_a_restricted_control_replaces_its_baseline_control() -> None:
    view = pod(container(capabilities={"add": ["NET_RAW"], "drop": ["ALL"]}), volumes=[{"name": "v", "hostPath": {}}])
    assert [each.reason for each in evaluation(view, Level.RESTRICTED, 21).violations] == [
        "non-default capabilities",
        "allowPrivilegeEscalation != false",
        "restricted volume types",
        "runAsNonRoot != true",
        "seccompProfile",
    ]
    reasons = [each.reason for each in evaluation(view, Level.RESTRICTED, 22).violations]
    assert "non-default capabilities" not in reasons
    assert "unrestricted capabilities" in reasons


def test_controls_are_in_the_order_of_messages() -> None:
    ordered = sorted(checks.CONTROLS, key=lambda control: (control.level, control.name))
    assert list(checks.CONTROLS) == ordered
    for control in checks.CONTROLS:
        minors = [minor for minor, _ in control.revisions]
        assert all(one < other for one, other in itertools.pairwise(minors))
    assert max(minor for control in checks.CONTROLS for minor, _ in control.revisions) == checks.NEWEST


def test_the_privileged_level_refuses_nothing() -> None:
    assert texts(pod(container(privileged=True), hostPID=True), Level.PRIVILEGED) == []


def test_messages() -> None:
    found = evaluation(pod(container(privileged=True), hostPID=True), Level.BASELINE, 30)
    assert found.reasons == "host namespaces, privileged"
    assert found.message == (
        'PodSecurity "baseline:v1.30": host namespaces (hostPID=true), '
        'privileged (container "c" must not set securityContext.privileged=true)'
    )
