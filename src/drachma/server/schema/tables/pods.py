"""Pods: what they run, where, and what became of them; volumes are in a table of their own.

For the notation see :mod:`drachma.server.schema.notation`.
"""

from typing import Final

TYPES: Final = """\
@io.k8s.api.core.v1
Affinity: nodeAffinity=NodeAffinity podAffinity=PodAffinity podAntiAffinity=PodAntiAffinity
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
ContainerExtendedResourceRequest: containerName=str* requestName=str* resourceName=str*
ContainerPort: containerPort=int32* hostIP=str hostPort=int32 name=str protocol=str/TCP
ContainerResizePolicy: resourceName=str* restartPolicy=str*
ContainerRestartRule: action=str* exitCodes=ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes: operator=str* values={int32}
ContainerState: running=ContainerStateRunning terminated=ContainerStateTerminated waiting=ContainerStateWaiting
ContainerStateRunning: startedAt=Time!
ContainerStateTerminated: containerID=str exitCode=int32* finishedAt=Time! message=str reason=str signal=int32
    startedAt=Time!
ContainerStateWaiting: message=str reason=str
ContainerStatus: allocatedResources=<Quantity> allocatedResourcesStatus={ResourceStatus:name}~ containerID=str
    image=str* imageID=str* lastState=ContainerState! name=str* ready=bool* resources=ResourceRequirements
    restartCount=int32* started=bool? state=ContainerState! stopSignal=str? user=ContainerUser
    volumeMounts={VolumeMountStatus:mountPath}~
ContainerUser: linux=LinuxContainerUser
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
EvictionResponder!: name=str* priority=int32!*
ExecAction: command=[str]
FileKeySelector!: key=str* optional=bool?/False path=str* volumeName=str*
GRPCAction: mode=str? port=int32* service=str!/
HTTPGetAction: host=str httpHeaders=[HTTPHeader] path=str port=IntOrString!* protocol=str? scheme=str
HTTPHeader: name=str* value=str*
HostAlias: hostnames=[str] ip=str*
HostIP: ip=str*
ImageVolumeStatus: imageRef=str*
Lifecycle: postStart=LifecycleHandler preStop=LifecycleHandler stopSignal=str?
LifecycleHandler: exec=ExecAction httpGet=HTTPGetAction sleep=SleepAction tcpSocket=TCPSocketAction
LinuxContainerUser: gid=int64* supplementalGroups=[int64] uid=int64*
LocalObjectReference!: name=str/
NodeAffinity: preferredDuringSchedulingIgnoredDuringExecution=[PreferredSchedulingTerm]
    requiredDuringSchedulingIgnoredDuringExecution=NodeSelector
NodeAllocatableMappedResources: name=str* quantity=Quantity!*
NodeAllocatableOverheadResources: name=str* perContainer=Quantity perPod=Quantity
NodeAllocatableResourceClaimStatus: containers={str} mapping={NodeAllocatableMappedResources:name}~
    overhead={NodeAllocatableOverheadResources:name}~ resourceClaimName=str*
NodeSelector!: nodeSelectorTerms=[NodeSelectorTerm]!*
NodeSelectorRequirement: key=str* operator=str* values=[str]
NodeSelectorTerm!: matchExpressions=[NodeSelectorRequirement] matchFields=[NodeSelectorRequirement]
ObjectFieldSelector!: apiVersion=str fieldPath=str*
Pod: apiVersion=str kind=str metadata=ObjectMeta! spec=PodSpec! status=PodStatus!
PodAffinity: preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm]
    requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]
PodAffinityTerm: labelSelector=LabelSelector matchLabelKeys=[str] mismatchLabelKeys=[str]
    namespaceSelector=LabelSelector namespaces=[str] topologyKey=str*
PodAntiAffinity: preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm]
    requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]
PodCondition: lastProbeTime=Time! lastTransitionTime=Time! message=str observedGeneration=int64 reason=str status=str*
    type=str*
PodDNSConfig: nameservers=[str] options=[PodDNSConfigOption] searches=[str]
PodDNSConfigOption: name=str value=str?
PodExtendedResourceClaimStatus: requestMappings=[ContainerExtendedResourceRequest]!* resourceClaimName=str*
PodIP: ip=str*
PodOS: name=str*
PodReadinessGate: conditionType=str*
PodResourceClaim: name=str* resourceClaimName=str? resourceClaimTemplateName=str?
PodResourceClaimStatus: name=str* resourceClaimName=str?
PodSchedulingGate: name=str*
PodSchedulingGroup: podGroupName=str?
PodSecurityContext: appArmorProfile=AppArmorProfile fsGroup=int64? fsGroupChangePolicy=str? runAsGroup=int64?
    runAsNonRoot=bool? runAsUser=int64? seLinuxChangePolicy=str? seLinuxOptions=SELinuxOptions
    seccompProfile=SeccompProfile supplementalGroups=[int64] supplementalGroupsPolicy=str? sysctls=[Sysctl]
    windowsOptions=WindowsSecurityContextOptions
PodSpec: activeDeadlineSeconds=int64? affinity=Affinity automountServiceAccountToken=bool?
    containers={Container:name}!*~ dnsConfig=PodDNSConfig dnsPolicy=str enableServiceLinks=bool?
    ephemeralContainers={EphemeralContainer:name}~ evictionResponders={EvictionResponder:name}~
    hostAliases={HostAlias:ip}~ hostIPC=bool hostNetwork=bool hostPID=bool hostUsers=bool? hostname=str
    hostnameOverride=str? imagePullSecrets={LocalObjectReference:name}~ initContainers={Container:name}~ nodeName=str
    nodeSelector=<<str>> os=PodOS overhead=<Quantity> preemptionPolicy=str? priority=int32? priorityClassName=str
    readinessGates=[PodReadinessGate] resourceClaims={PodResourceClaim:name}~+ resources=ResourceRequirements
    restartPolicy=str runtimeClassName=str? schedulerName=str schedulingGates={PodSchedulingGate:name}~
    schedulingGroup=PodSchedulingGroup securityContext=PodSecurityContext serviceAccount=str serviceAccountName=str
    setHostnameAsFQDN=bool? shareProcessNamespace=bool? subdomain=str terminationGracePeriodSeconds=int64?
    tolerations=[Toleration] topologySpreadConstraints={TopologySpreadConstraint:topologyKey,whenUnsatisfiable}~
    volumes={Volume:name}~+
PodStatus: allocatedResources=<Quantity> conditions={PodCondition:type}~ containerStatuses=[ContainerStatus]
    ephemeralContainerStatuses=[ContainerStatus] extendedResourceClaimStatus=PodExtendedResourceClaimStatus hostIP=str
    hostIPs=[HostIP]~ip initContainerStatuses=[ContainerStatus] message=str
    nodeAllocatableResourceClaimStatuses={NodeAllocatableResourceClaimStatus:resourceClaimName}~ nominatedNodeName=str
    observedGeneration=int64 phase=str podIP=str podIPs={PodIP:ip}~ qosClass=str reason=str resize=str
    resourceClaimStatuses={PodResourceClaimStatus:name}~+ resources=ResourceRequirements startTime=Time
    volumeHealth={PodVolumeHealth:name}
PodVolumeHealth: healthConditions={VolumeHealthCondition:status,reason}~ lastTransitionTime=Time! name=str*
PreferredSchedulingTerm: preference=NodeSelectorTerm!* weight=int32*
Probe: exec=ExecAction failureThreshold=int32 grpc=GRPCAction httpGet=HTTPGetAction initialDelaySeconds=int32
    periodSeconds=int32 successThreshold=int32 tcpSocket=TCPSocketAction terminationGracePeriodSeconds=int64?
    timeoutSeconds=int32
ResourceClaim: name=str* request=str
ResourceFieldSelector!: containerName=str divisor=Quantity! resource=str*
ResourceHealth: health=str message=str? resourceID=str*
ResourceRequirements: claims={ResourceClaim:name} limits=<Quantity> requests=<Quantity>
ResourceStatus: name=str* resources={ResourceHealth:resourceID}
SELinuxOptions: level=str role=str type=str user=str
SeccompProfile: localhostProfile=str? type=str*
SecretEnvSource: name=str/ optional=bool?
SecretKeySelector!: key=str* name=str/ optional=bool?
SecurityContext: allowPrivilegeEscalation=bool? appArmorProfile=AppArmorProfile capabilities=Capabilities
    privileged=bool? procMount=str? readOnlyRootFilesystem=bool? runAsGroup=int64? runAsNonRoot=bool? runAsUser=int64?
    seLinuxOptions=SELinuxOptions seccompProfile=SeccompProfile windowsOptions=WindowsSecurityContextOptions
SleepAction: seconds=int64*
Sysctl: name=str* value=str*
TCPSocketAction: host=str port=IntOrString!*
Toleration: effect=str key=str operator=str tolerationSeconds=int64? value=str
TopologySpreadConstraint: labelSelector=LabelSelector matchLabelKeys=[str] maxSkew=int32* minDomains=int32?
    nodeAffinityPolicy=str? nodeTaintsPolicy=str? topologyKey=str* whenUnsatisfiable=str*
VolumeDevice: devicePath=str* name=str*
VolumeHealthCondition: message=str reason=str* status=str*
VolumeMount: bindMountOptions={str} mountPath=str* mountPropagation=str? name=str* readOnly=bool recursiveReadOnly=str?
    subPath=str subPathExpr=str
VolumeMountStatus: mountPath=str* name=str* readOnly=bool recursiveReadOnly=str? volumeStatus=VolumeStatus
VolumeStatus: image=ImageVolumeStatus
WeightedPodAffinityTerm: podAffinityTerm=PodAffinityTerm!* weight=int32*
WindowsSecurityContextOptions: gmsaCredentialSpec=str? gmsaCredentialSpecName=str? hostProcess=bool? runAsUserName=str?
"""
