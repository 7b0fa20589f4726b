"""Field numbers of the core kinds.

For the notation see :mod:`drachma.server.decoding.protobuf.notation`.
"""

from typing import Final

TYPES: Final = """\
@io.k8s.api.core.v1
Affinity: nodeAffinity podAffinity podAntiAffinity
AppArmorProfile: type localhostProfile?
Binding: metadata target
Capabilities: add drop
ConfigMap: metadata data binaryData immutable?
ConfigMapEnvSource: +LocalObjectReference optional?
ConfigMapKeySelector: +LocalObjectReference key optional?
ConfigMapNodeConfigSource: namespace name uid resourceVersion kubeletConfigKey
Container: name image command args workingDir ports env resources volumeMounts livenessProbe readinessProbe
    lifecycle terminationMessagePath imagePullPolicy securityContext stdin stdinOnce tty envFrom
    terminationMessagePolicy volumeDevices startupProbe resizePolicy restartPolicy restartPolicyRules
ContainerExtendedResourceRequest: containerName resourceName requestName
ContainerImage: names sizeBytes
ContainerPort: name hostPort containerPort protocol hostIP
ContainerResizePolicy: resourceName restartPolicy
ContainerRestartRule: action exitCodes
ContainerRestartRuleOnExitCodes: operator values
ContainerState: waiting running terminated
ContainerStateRunning: startedAt
ContainerStateTerminated: exitCode signal reason message startedAt finishedAt containerID
ContainerStateWaiting: reason message
ContainerStatus: name state lastState ready restartCount image imageID containerID started? allocatedResources
    resources volumeMounts user allocatedResourcesStatus stopSignal
ContainerUser: linux
DaemonEndpoint: Port
EnvFromSource: prefix configMapRef secretRef
EnvVar: name value valueFrom
EnvVarSource: fieldRef resourceFieldRef configMapKeyRef secretKeyRef fileKeyRef
EphemeralContainer: +EphemeralContainerCommon targetContainerName
EphemeralContainerCommon: name image command args workingDir ports env resources volumeMounts livenessProbe
    readinessProbe lifecycle terminationMessagePath imagePullPolicy securityContext stdin stdinOnce tty envFrom
    terminationMessagePolicy volumeDevices startupProbe resizePolicy restartPolicy restartPolicyRules
Event: metadata involvedObject reason message source firstTimestamp lastTimestamp count type eventTime series action
    related reportingComponent reportingInstance
EventSeries: count lastObservedTime
EventSource: component host
EvictionResponder: name priority?
ExecAction: command
FileKeySelector: volumeName path key optional?
GRPCAction: port service? mode
HTTPGetAction: path port host scheme httpHeaders protocol
HTTPHeader: name value
HostAlias: ip hostnames
HostIP: ip
Lifecycle: postStart preStop stopSignal
LifecycleHandler: exec httpGet tcpSocket sleep
LinuxContainerUser: uid gid supplementalGroups
LocalObjectReference: name
Namespace: metadata spec status
NamespaceCondition: type status 4:lastTransitionTime reason message
NamespaceSpec: finalizers
NamespaceStatus: phase conditions
Node: metadata spec status
NodeAddress: type address
NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution
NodeAllocatableMappedResources: name quantity
NodeAllocatableOverheadResources: name perPod perContainer
NodeAllocatableResourceClaimStatus: resourceClaimName containers 4:mapping overhead
NodeCondition: type status lastHeartbeatTime lastTransitionTime reason message
NodeConfigSource: 2:configMap
NodeConfigStatus: assigned active lastKnownGood error
NodeDaemonEndpoints: kubeletEndpoint
NodeFeatures: supplementalGroupsPolicy?
NodePodPreemptionPolicy: disableResizePreemption
NodeRuntimeHandler: name features
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts? userNamespaces?
NodeSelector: nodeSelectorTerms
NodeSelectorRequirement: key operator values
NodeSelectorTerm: matchExpressions matchFields
NodeSpec: podCIDR externalID providerID unschedulable taints configSource podCIDRs podPreemptionPolicy
NodeStatus: capacity allocatable phase conditions addresses daemonEndpoints nodeInfo images volumesInUse
    volumesAttached config runtimeHandlers features declaredFeatures
NodeSwapStatus: capacity?
NodeSystemInfo: machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion kubeletVersion
    kubeProxyVersion operatingSystem architecture swap runningInUserNamespace?
ObjectFieldSelector: apiVersion fieldPath
ObjectReference: kind namespace name uid apiVersion resourceVersion fieldPath
Pod: metadata spec status
PodAffinity: requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution
PodAffinityTerm: labelSelector namespaces topologyKey namespaceSelector matchLabelKeys mismatchLabelKeys
PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution
PodCondition: type status lastProbeTime lastTransitionTime reason message observedGeneration
PodDNSConfig: nameservers searches options
PodDNSConfigOption: name value?
PodExtendedResourceClaimStatus: requestMappings resourceClaimName
PodIP: ip
PodOS: name
PodReadinessGate: conditionType
PodResourceClaim: name 3:resourceClaimName? resourceClaimTemplateName?
PodResourceClaimStatus: name resourceClaimName?
PodSchedulingGate: name
PodSchedulingGroup: podGroupName?
PodSecurityContext: seLinuxOptions runAsUser? runAsNonRoot? supplementalGroups fsGroup? runAsGroup? sysctls
    windowsOptions fsGroupChangePolicy seccompProfile appArmorProfile supplementalGroupsPolicy seLinuxChangePolicy
PodSpec: volumes containers restartPolicy terminationGracePeriodSeconds? activeDeadlineSeconds? dnsPolicy
    nodeSelector serviceAccountName serviceAccount nodeName hostNetwork hostPID hostIPC securityContext
    imagePullSecrets hostname subdomain affinity schedulerName initContainers automountServiceAccountToken?
    tolerations hostAliases priorityClassName priority? dnsConfig shareProcessNamespace? readinessGates
    runtimeClassName? enableServiceLinks? preemptionPolicy overhead topologySpreadConstraints ephemeralContainers
    setHostnameAsFQDN? os hostUsers? schedulingGates resourceClaims resources hostnameOverride? 43:schedulingGroup
    evictionResponders
PodStatus: phase conditions message reason hostIP podIP startTime containerStatuses qosClass initContainerStatuses
    nominatedNodeName podIPs ephemeralContainerStatuses resize resourceClaimStatuses hostIPs observedGeneration
    extendedResourceClaimStatus allocatedResources resources nodeAllocatableResourceClaimStatuses volumeHealth
PodTemplateSpec: metadata spec
PreferredSchedulingTerm: weight preference
Probe: +ProbeHandler initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold
    terminationGracePeriodSeconds?
ProbeHandler: exec httpGet tcpSocket grpc
ResourceClaim: name request
ResourceFieldSelector: containerName resource divisor
ResourceHealth: resourceID health 6:message?
ResourceQuota: metadata spec status
ResourceQuotaSpec: hard scopes scopeSelector
ResourceQuotaStatus: hard used
ResourceRequirements: limits requests claims
ResourceStatus: name resources
SELinuxOptions: user role type level
ScopeSelector: matchExpressions
ScopedResourceSelectorRequirement: scopeName operator values
SeccompProfile: type localhostProfile?
Secret: metadata data type stringData immutable?
SecretEnvSource: +LocalObjectReference optional?
SecretKeySelector: +LocalObjectReference key optional?
SecurityContext: capabilities privileged? seLinuxOptions runAsUser? runAsNonRoot? readOnlyRootFilesystem?
    allowPrivilegeEscalation? runAsGroup? procMount windowsOptions seccompProfile appArmorProfile
ServiceAccount: metadata secrets imagePullSecrets automountServiceAccountToken?
SleepAction: seconds
Sysctl: name value
TCPSocketAction: port host
Taint: key value effect timeAdded
Toleration: key operator value effect tolerationSeconds?
TopologySpreadConstraint: maxSkew topologyKey whenUnsatisfiable labelSelector minDomains? nodeAffinityPolicy
    nodeTaintsPolicy matchLabelKeys
TypedLocalObjectReference: apiGroup? kind name
TypedObjectReference: apiGroup? kind name namespace?
WeightedPodAffinityTerm: weight podAffinityTerm
WindowsSecurityContextOptions: gmsaCredentialSpecName? gmsaCredentialSpec? runAsUserName? hostProcess?
"""
