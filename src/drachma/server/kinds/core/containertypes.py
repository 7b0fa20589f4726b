"""Containers: what they run, with which environment, probes, resources and rights.

For the notation see :mod:`drachma.server.schema.notation`.
"""

from typing import Final

from drachma.api import pod
from drachma.server.kinds.core import references
from drachma.server.schema import metatypes, notation

_TYPES: Final = """\
AppArmorProfile: localhostProfile=str? type=str*
Capabilities: add=[str] drop=[str]
ConfigMapEnvSource: name=str/ optional=bool?
ConfigMapKeySelector!: key=str* name=str/ optional=bool?
Container: args=[str] command=[str] env={EnvVar:name}~ envFrom=[EnvFromSource] image=str imagePullPolicy=str
    lifecycle=Lifecycle livenessProbe=Probe name=str* ports={ContainerPort:containerPort,protocol}~ readinessProbe=Probe
    resizePolicy=[ContainerResizePolicy] resources=ResourceRequirements! restartPolicy=str?
    restartPolicyRules=[ContainerRestartRule] securityContext=SecurityContext startupProbe=Probe stdin=bool
    stdinOnce=bool terminationMessagePath=str terminationMessagePolicy=str tty=bool
    volumeDevices={VolumeDevice:devicePath}~ volumeMounts={VolumeMount:mountPath}~ workingDir=str
ContainerPort: containerPort=int32* hostIP=str hostPort=int32 name=str protocol=str/TCP
ContainerResizePolicy: resourceName=str* restartPolicy=str*
ContainerRestartRule: action=str* exitCodes=ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes: operator=str* values={int32}
EnvFromSource: configMapRef=ConfigMapEnvSource prefix=str secretRef=SecretEnvSource
EnvVar: name=str* value=str valueFrom=EnvVarSource
EnvVarSource: configMapKeyRef=ConfigMapKeySelector fieldRef=ObjectFieldSelector fileKeyRef=FileKeySelector
    resourceFieldRef=ResourceFieldSelector secretKeyRef=SecretKeySelector
EphemeralContainer: args=[str] command=[str] env={EnvVar:name}~ envFrom=[EnvFromSource] image=str imagePullPolicy=str
    lifecycle=Lifecycle livenessProbe=Probe name=str* ports={ContainerPort:containerPort,protocol}~ readinessProbe=Probe
    resizePolicy=[ContainerResizePolicy] resources=ResourceRequirements! restartPolicy=str?
    restartPolicyRules=[ContainerRestartRule] securityContext=SecurityContext startupProbe=Probe stdin=bool
    stdinOnce=bool targetContainerName=str terminationMessagePath=str terminationMessagePolicy=str tty=bool
    volumeDevices={VolumeDevice:devicePath}~ volumeMounts={VolumeMount:mountPath}~ workingDir=str
ExecAction: command=[str]
FileKeySelector!: key=str* optional=bool?/False path=str* volumeName=str*
GRPCAction: mode=str? port=int32* service=str!/
HTTPGetAction: host=str httpHeaders=[HTTPHeader] path=str port=IntOrString!* protocol=str? scheme=str
HTTPHeader: name=str* value=str*
Lifecycle: postStart=LifecycleHandler preStop=LifecycleHandler stopSignal=str?
LifecycleHandler: exec=ExecAction httpGet=HTTPGetAction sleep=SleepAction tcpSocket=TCPSocketAction
Probe: exec=ExecAction failureThreshold=int32 grpc=GRPCAction httpGet=HTTPGetAction initialDelaySeconds=int32
    periodSeconds=int32 successThreshold=int32 tcpSocket=TCPSocketAction terminationGracePeriodSeconds=int64?
    timeoutSeconds=int32
ResourceClaim: name=str* request=str
ResourceRequirements: claims={ResourceClaim:name} limits=<Quantity> requests=<Quantity>
SELinuxOptions: level=str role=str type=str user=str
SeccompProfile: localhostProfile=str? type=str*
SecretEnvSource: name=str/ optional=bool?
SecretKeySelector!: key=str* name=str/ optional=bool?
SecurityContext: allowPrivilegeEscalation=bool? appArmorProfile=AppArmorProfile capabilities=Capabilities
    privileged=bool? procMount=str? readOnlyRootFilesystem=bool? runAsGroup=int64? runAsNonRoot=bool? runAsUser=int64?
    seLinuxOptions=SELinuxOptions seccompProfile=SeccompProfile windowsOptions=WindowsSecurityContextOptions
SleepAction: seconds=int64*
TCPSocketAction: host=str port=IntOrString!*
VolumeDevice: devicePath=str* name=str*
VolumeMount: bindMountOptions={str} mountPath=str* mountPropagation=str? name=str* readOnly=bool recursiveReadOnly=str?
    subPath=str subPathExpr=str
WindowsSecurityContextOptions: gmsaCredentialSpec=str? gmsaCredentialSpecName=str? hostProcess=bool? runAsUserName=str?
"""
_NUMBERS: Final = """\
AppArmorProfile: type localhostProfile?
Capabilities: add drop
ConfigMapEnvSource: +LocalObjectReference optional?
ConfigMapKeySelector: +LocalObjectReference key optional?
Container: name image command args workingDir ports env resources volumeMounts livenessProbe readinessProbe lifecycle
    terminationMessagePath imagePullPolicy securityContext stdin stdinOnce tty envFrom terminationMessagePolicy
    volumeDevices startupProbe resizePolicy restartPolicy restartPolicyRules
ContainerPort: name hostPort containerPort protocol hostIP
ContainerResizePolicy: resourceName restartPolicy
ContainerRestartRule: action exitCodes
ContainerRestartRuleOnExitCodes: operator values
EnvFromSource: prefix configMapRef secretRef
EnvVar: name value valueFrom
EnvVarSource: fieldRef resourceFieldRef configMapKeyRef secretKeyRef fileKeyRef
EphemeralContainer: +EphemeralContainerCommon targetContainerName
EphemeralContainerCommon: name image command args workingDir ports env resources volumeMounts livenessProbe
    readinessProbe lifecycle terminationMessagePath imagePullPolicy securityContext stdin stdinOnce tty envFrom
    terminationMessagePolicy volumeDevices startupProbe resizePolicy restartPolicy restartPolicyRules
ExecAction: command
FileKeySelector: volumeName path key optional?
GRPCAction: port service? mode
HTTPGetAction: path port host scheme httpHeaders protocol
HTTPHeader: name value
Lifecycle: postStart preStop stopSignal
LifecycleHandler: exec httpGet tcpSocket sleep
Probe: +ProbeHandler initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold
    terminationGracePeriodSeconds?
ProbeHandler: exec httpGet tcpSocket grpc
ResourceClaim: name request
ResourceRequirements: limits requests claims
SELinuxOptions: user role type level
SeccompProfile: type localhostProfile?
SecretEnvSource: +LocalObjectReference optional?
SecretKeySelector: +LocalObjectReference key optional?
SecurityContext: capabilities privileged? seLinuxOptions runAsUser? runAsNonRoot? readOnlyRootFilesystem?
    allowPrivilegeEscalation? runAsGroup? procMount windowsOptions seccompProfile appArmorProfile
SleepAction: seconds
TCPSocketAction: port host
VolumeDevice: name devicePath
VolumeMount: name readOnly mountPath subPath mountPropagation subPathExpr recursiveReadOnly bindMountOptions
WindowsSecurityContextOptions: gmsaCredentialSpecName? gmsaCredentialSpec? runAsUserName? hostProcess?
"""
_TEXTS: Final = """\
ResourceClaim: A container's use of one of the pod's claims.
Container.name: The name of the container, unique in the pod.
Container.image: What to run.
Container.command: The program and its first arguments, in place of the image's.
Container.args: Arguments, in place of the image's.
Container.env: Environment variables.
Container.ports: Ports that the container listens on.
Container.resources: What the container needs.
Container.volumeMounts: Where volumes are mounted.
ResourceRequirements.claims: The pod's claims that this container uses.
ResourceRequirements.limits: How much the container may use at most.
ResourceRequirements.requests: How much the container needs at least.
"""

CONTAINERS: Final = notation.Types(
    "io.k8s.api.core.v1",
    _TYPES,
    numbers=_NUMBERS,
    texts=_TEXTS,
    docs=(pod,),
    uses=(
        metatypes.META,
        references.REFERENCES,
    ),
)
