"""What fields mean, in our words, for OpenAPI and ``kubectl explain``: a line for a field, ``Type.field: text``.

A field without a line has the text of its type; a type has the docstring of its struct, or a line without field.
"""

from typing import Final

TEXTS: Final = """\
*.apiVersion: The version of the API that the object is written in, as group/version.
*.kind: The kind of the object.
*.metadata: Name, namespace, labels and everything else that objects of all kinds have.
*.spec: What is wanted.
*.status: What is.
*.conditions: Observed aspects of the state, one of each type.
ObjectMeta.annotations: Texts that tools keep with the object; nothing is selected by them.
ObjectMeta.creationTimestamp: When the server created the object.
ObjectMeta.deletionGracePeriodSeconds: How long the object has from the request to delete it until it goes.
ObjectMeta.deletionTimestamp: When deletion was asked for; the object goes when its finalizers are gone.
ObjectMeta.finalizers: Who has something to do before the object may go.
ObjectMeta.generateName: The beginning of a name that the server completes; used where no name is given.
ObjectMeta.generation: Counts the changes of what is wanted.
ObjectMeta.labels: Key and value pairs that objects are selected by.
ObjectMeta.managedFields: Who owns which fields; kept by the server.
ObjectMeta.name: The name of the object, unique among its kind in its namespace; it never changes.
ObjectMeta.namespace: The namespace the object lives in; empty for kinds of cluster scope.
ObjectMeta.ownerReferences: What the object belongs to; it goes when all of that is gone.
ObjectMeta.resourceVersion: Changes with every write; send it back to make sure that nothing is overwritten.
ObjectMeta.selfLink: Not used any more.
ObjectMeta.uid: Tells the object from earlier ones of the same name.
OwnerReference.apiVersion: The API version of the owner.
OwnerReference.blockOwnerDeletion: Whether a foreground deletion of the owner waits for this object.
OwnerReference.controller: Whether the owner manages this object; at most one owner does.
OwnerReference.kind: The kind of the owner.
OwnerReference.name: The name of the owner.
OwnerReference.uid: The uid of the owner.
LabelSelector.matchExpressions: Expressions over labels; all must hold.
LabelSelector.matchLabels: Labels that must be there with these values.
Condition.type: Which aspect this is about.
Condition.status: True, False or Unknown.
Condition.reason: Why, in one word.
Condition.message: Why, for people.
Condition.lastTransitionTime: When the status last changed.
Condition.observedGeneration: Which generation of the object this was observed of.
ListMeta: The version of a list, and where it goes on.
ListMeta.continue: Send it back to get the next part of the list.
ListMeta.remainingItemCount: How many items are still to come.
ListMeta.resourceVersion: The version of the list; a watch can begin there.
*.items: The objects of the list.
DeleteOptions: How an object is to be deleted.
Status: The answer to a request that has no object as its answer, mostly an error.
DeviceClass: A kind of device that an administrator offers under a name; claims ask for devices of classes.
ResourceClaim: A wish for devices, and once they are allocated, which devices those are and who uses them.
ResourceClaimTemplate: From which a pod gets a claim of its own.
ResourceSlice: Devices, or some of the devices of a pool, as a driver publishes them.
DeviceTaintRule: A taint on all devices that a selector names.
Pod: Containers that run together on one node.
Node: A machine that runs pods.
Namespace: A part of the cluster with names of its own.
ResourceQuota: How much a namespace may use, and how much it does.
Event: Something that happened to an object.
Lease: Who leads, or when a node was last alive.
Job: Pods that run until so many of them have succeeded.
core.v1.ResourceClaim: A container's use of one of the pod's claims.
DeviceClassSpec.selectors: What a device must be like to belong to the class; all selectors must match.
DeviceClassSpec.config: Configuration that claims of the class pass to drivers.
DeviceClassSpec.extendedResourceName: The extended resource through which pods can ask for the class without a claim.
DeviceSelector.cel: A CEL expression that is true for devices that match.
CELDeviceSelector.expression: The expression; it sees the driver, attributes and capacity of one device.
OpaqueDeviceConfiguration.driver: The driver that the parameters are for.
OpaqueDeviceConfiguration.parameters: Anything the driver understands, as an object with apiVersion and kind.
DeviceClaim.requests: The devices that are wanted; each request has a name.
DeviceClaim.constraints: What the devices of several requests must have in common or apart.
DeviceClaim.config: Configuration that drivers get with the devices.
ResourceClaimSpec.devices: Which devices are wanted, and how they are to be configured.
DeviceRequest.name: The name of the request, unique in the claim; containers refer to it.
DeviceRequest.exactly: One way to satisfy the request.
DeviceRequest.firstAvailable: Several ways to satisfy the request; the first that can be had is taken.
ExactDeviceRequest.deviceClassName: The class that the devices must belong to.
ExactDeviceRequest.selectors: What else a device must be like.
ExactDeviceRequest.allocationMode: ExactCount for a number of devices, All for all that match.
ExactDeviceRequest.count: How many devices, if the mode is ExactCount; 1 if not set.
ExactDeviceRequest.adminAccess: Use devices for administration although others use them.
ExactDeviceRequest.tolerations: Which taints of devices are put up with.
ExactDeviceRequest.capacity: How much of a device's capacity is needed.
DeviceSubRequest.name: The name of this way, unique in its request.
DeviceSubRequest.deviceClassName: The class that the devices must belong to.
DeviceSubRequest.selectors: What else a device must be like.
DeviceSubRequest.allocationMode: ExactCount for a number of devices, All for all that match.
DeviceSubRequest.count: How many devices, if the mode is ExactCount; 1 if not set.
DeviceSubRequest.tolerations: Which taints of devices are put up with.
DeviceConstraint.requests: The requests that the constraint is about; without any, all.
DeviceConstraint.matchAttribute: An attribute that all the devices must have the same value of.
DeviceConstraint.distinctAttribute: An attribute that all the devices must have different values of.
DeviceToleration.key: The key of the taints that are tolerated; without one, all keys.
DeviceToleration.operator: Equal or Exists.
DeviceToleration.value: The value of the taints that are tolerated.
DeviceToleration.effect: The effect of the taints that are tolerated; without one, all effects.
DeviceToleration.tolerationSeconds: How long a NoExecute taint is tolerated.
ResourceClaimStatus.allocation: What was allocated; absent until then.
ResourceClaimStatus.reservedFor: Who may use the claim now.
ResourceClaimStatus.devices: What drivers report about the allocated devices.
AllocationResult.devices: The allocated devices.
AllocationResult.nodeSelector: Where the devices can be used; without it, everywhere.
DeviceRequestAllocationResult.request: The request that the device was allocated for.
DeviceRequestAllocationResult.driver: The driver of the device.
DeviceRequestAllocationResult.pool: The pool that the device is in.
DeviceRequestAllocationResult.device: The name of the device in its pool.
ResourceClaimTemplateSpec.metadata: Labels and annotations of the claims.
ResourceClaimTemplateSpec.spec: What the claims ask for.
ResourceSliceSpec.driver: The driver that publishes the slice.
ResourceSliceSpec.pool: The pool that the slice is part of.
ResourceSliceSpec.nodeName: The one node that can use the devices.
ResourceSliceSpec.nodeSelector: The nodes that can use the devices.
ResourceSliceSpec.allNodes: All nodes can use the devices.
ResourceSliceSpec.perDeviceNodeSelection: Every device says itself which nodes can use it.
ResourceSliceSpec.devices: The devices.
ResourceSliceSpec.sharedCounters: Counters that devices of the pool share.
ResourcePool.name: The name of the pool; often that of a node.
ResourcePool.generation: Which generation of the pool this is; slices of older ones do not count.
ResourcePool.resourceSliceCount: Of how many slices the pool consists in this generation.
Device.name: The name of the device, unique in its pool.
Device.attributes: What the device is like; selectors and constraints read it.
Device.capacity: How much of what the device has.
Device.taints: What keeps claims away from the device.
Device.consumesCounters: What the device takes from shared counters when it is allocated.
DeviceTaint.key: The key of the taint.
DeviceTaint.value: The value of the taint.
DeviceTaint.effect: None, NoSchedule or NoExecute.
DeviceTaint.timeAdded: When the taint was added.
DeviceTaintRuleSpec.deviceSelector: The devices that get the taint.
DeviceTaintRuleSpec.taint: The taint.
PodSpec.containers: The containers of the pod.
PodSpec.initContainers: Containers that run before the others, one after the other.
PodSpec.volumes: What containers can mount.
PodSpec.nodeName: The node that the pod runs on; set by the scheduler.
PodSpec.nodeSelector: Labels that a node must have to run the pod.
PodSpec.tolerations: Which taints of nodes the pod puts up with.
PodSpec.resourceClaims: The claims whose devices the pod uses; containers refer to them by name.
PodSpec.schedulerName: Who schedules the pod.
PodSpec.restartPolicy: Always, OnFailure or Never.
PodSpec.priorityClassName: The class that the pod's priority comes from.
PodSpec.schedulingGates: What keeps the pod from being scheduled yet.
PodSpec.affinity: Where the pod must or should run, and beside which pods.
PodStatus.phase: Pending, Running, Succeeded, Failed or Unknown.
PodStatus.nominatedNodeName: Where the pod will run once others have made room.
PodStatus.resourceClaimStatuses: Which claims were made for the pod.
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
NodeSpec.taints: What keeps pods away from the node.
NodeSpec.unschedulable: Whether new pods stay away.
NodeStatus.capacity: What the node has.
NodeStatus.allocatable: What pods can have of it.
ResourceQuotaSpec.hard: The most that the namespace may use of each resource.
ConfigMap.data: Texts by name.
ConfigMap.binaryData: Bytes by name.
ConfigMap: Configuration that pods can read.
Secret: Data that only few should read.
Secret.data: Bytes by name.
Secret.stringData: Texts by name; written as data.
Secret.type: What the secret is for.
ServiceAccount: Who a pod is when it talks to the API server.
Deployment: Pods of one template, replaced step by step when the template changes.
DeploymentSpec.replicas: How many pods there should be.
DeploymentSpec.selector: Which pods belong to the deployment.
DeploymentSpec.template: What the pods look like.
DeploymentSpec.strategy: How pods are replaced.
ReplicaSet: So many pods of one template.
PriorityClass: A named priority that pods can have.
PriorityClass.value: The priority; pods of higher priority are scheduled first.
JobSpec.template: What the pods look like.
JobSpec.completions: How many pods must succeed.
JobSpec.parallelism: How many pods run at once.
Binding: The decision to run a pod on a node.
Eviction: The wish to have a pod go.
Scale: How many pods a workload should have.
"""
