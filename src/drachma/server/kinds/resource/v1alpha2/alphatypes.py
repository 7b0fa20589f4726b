"""The types of ``resource.k8s.io/v1alpha2``: read off their structs, with what structs do not say.

See :mod:`drachma.server.kinds.resource.devicetypes`, which does so for later versions. Field numbers are those of
Kubernetes 1.30; fields that only the KEP has are numbered after them.
"""

from typing import Final

from drachma.api import meta
from drachma.api.v1alpha2 import (
    parameters,
    references,
    resourceclaim,
    resourceclaimtemplate,
    resourceclass,
    resourceslice,
)
from drachma.server.kinds.core import references as core
from drachma.server.schema import metatypes, model, notation, structs

_FACTS: Final = """\
Attribute: name=str*
NamedResource: name=str*
NamedResourcesAttribute: name=str*
NamedResourcesInstance: name=str*
NamedResourcesIntSlice: ints=[int64]*
NamedResourcesStringSlice: strings=[str]*
NamedResourcesAllocationResult: name=str*
NodeResourceSlice: spec=RawExtension*
NodeResourceSliceSpec: driverName=str* nodeName=str*
ResourceClaimConsumerReference: name=str* resource=str* uid=str@types.UID*
ResourceClaimParametersReference: kind=str* name=str* uid=str@types.UID
ResourceClaimSpec: allocationMode=str@AllocationMode resourceClassName=str*
ResourceClaimStatus: reservedFor={RawExtension:uid}~
ResourceClass: driverName=str*
ResourceClassParametersReference: kind=str* name=str* uid=str@types.UID
ResourceSlice: driverName=str*
"""
_NUMBERS: Final = """\
AllocationResult: resourceHandles availableOnNodes shareable?
Attribute: name 2:bool? 5:string? quantity int? intSlice stringSlice version?
DriverAllocationResult: vendorRequestParameters namedResources
DriverRequests: driverName vendorParameters requests
DriverResourceRequest: vendorParameters namedResources
NamedResource: name attributes
NamedResourcesAllocationResult: name
NamedResourcesAttribute: name 2:bool? 5:string? quantity int? intSlice stringSlice version?
NamedResourcesFilter: selector
NamedResourcesInstance: name attributes
NamedResourcesIntSlice: ints
NamedResourcesRequest: selector
NamedResourcesResources: instances
NamedResourcesStringSlice: strings
NamedResourcesWithAttributesRequest: required selector
NamedResourcesWithAttributesResult: resources
NodeResourceSlice: metadata spec
NodeResourceSliceSpec: nodeName driverName namedResourcesWithAttributes
ResourceClaim: metadata spec status
ResourceClaimConsumerReference: apiGroup 3:resource name uid
ResourceClaimParameters: metadata generatedFrom shareable? driverRequests vendorParameters requests
ResourceClaimParametersReference: apiGroup kind name 5:uid
ResourceClaimSpec: resourceClassName parametersRef allocationMode
ResourceClaimStatus: driverName allocation reservedFor deallocationRequested?
ResourceClaimTemplate: metadata spec
ResourceClaimTemplateSpec: metadata spec
ResourceClass: metadata driverName parametersRef suitableNodes structuredParameters?
ResourceClassParameters: metadata generatedFrom vendorParameters filters
ResourceClassParametersReference: apiGroup kind name namespace uid
ResourceFilter: driverName namedResources namedResourcesWithAttributes
ResourceHandle: driverName data 5:structuredData
ResourceRequest: driverName namedResourcesWithAttributes
ResourceSlice: metadata nodeName driverName namedResources
StructuredResourceHandle: vendorClassParameters vendorClaimParameters 4:nodeName results namedResourcesWithAttributes
"""
_TEXTS: Final = """\
ResourceClass: What an administrator offers under a name; claims ask for resources of classes.
ResourceClass.driverName: The driver that allocates claims of the class.
ResourceClass.parametersRef: An object with parameters of the class.
ResourceClass.suitableNodes: Only these nodes are looked at for pods with claims of the class.
ResourceClass.structuredParameters: Claims of the class are allocated by the scheduler, from what drivers publish.
ResourceClaim: A wish for a resource of a class, and once it is allocated, what that is and who uses it.
ResourceClaimSpec.resourceClassName: The class.
ResourceClaimSpec.parametersRef: An object of the same namespace with parameters of the claim.
ResourceClaimSpec.allocationMode: WaitForFirstConsumer, or Immediate: then it stays allocated when nobody uses it.
ResourceClaimStatus.driverName: The driver of the class when the claim was allocated.
ResourceClaimStatus.allocation: What was allocated; absent until then.
ResourceClaimStatus.reservedFor: Who may use the claim now.
ResourceClaimStatus.deallocationRequested: The driver is to take back what it allocated.
AllocationResult.resourceHandles: What drivers are told, one entry for each.
AllocationResult.availableOnNodes: Where the claim can be used; without it, everywhere.
AllocationResult.shareable: Several may use the claim at a time.
ResourceHandle.driverName: The driver.
ResourceHandle.data: Anything that the driver understands.
ResourceHandle.structuredData: What was allocated from what the driver publishes.
StructuredResourceHandle.vendorClassParameters: Parameters of the class at the time.
StructuredResourceHandle.vendorClaimParameters: Parameters of the claim at the time.
StructuredResourceHandle.nodeName: The node whose resources were allocated.
StructuredResourceHandle.namedResourcesWithAttributes: The resources, if that is their model.
StructuredResourceHandle.results: One result for each request, as Kubernetes 1.30 has it.
NamedResourcesWithAttributesResult.resources: The names of the resources.
ResourceClaimTemplate: From which a pod gets a claim of its own.
ResourceClaimTemplateSpec.metadata: Labels and annotations of the claims.
ResourceClaimTemplateSpec.spec: What the claims ask for.
ResourceClaimParameters: What the parameters of claims mean to the scheduler.
ResourceClaimParameters.generatedFrom: The vendor's object that these were generated from.
ResourceClaimParameters.shareable: Several may use the claim at a time.
ResourceClaimParameters.vendorParameters: Anything that is passed to the drivers.
ResourceClaimParameters.requests: The resources that are wanted.
ResourceClaimParameters.driverRequests: The resources that are wanted of each driver, as Kubernetes 1.30 has it.
ResourceRequest.driverName: The driver of the resources.
ResourceRequest.namedResourcesWithAttributes: What is wanted, if that is the model of the resources.
NamedResourcesWithAttributesRequest.required: Requests for one resource each.
NamedResourcesWithAttributesRequest.selector: A CEL expression over attributes, if one resource is wanted.
NamedResourcesRequest.selector: A CEL expression over attributes that is true for suitable resources.
NamedResourcesFilter.selector: A CEL expression over attributes that is true for suitable resources.
ResourceClassParameters: What the parameters of classes mean to the scheduler.
ResourceClassParameters.generatedFrom: The vendor's object that these were generated from.
ResourceClassParameters.vendorParameters: Anything that is passed to the drivers.
ResourceClassParameters.filters: What resources must be like that claims of the class get, by driver.
ResourceFilter.driverName: The driver of the resources.
NodeResourceSlice: Resources of a node, as a driver publishes them.
NodeResourceSliceSpec.nodeName: The node.
NodeResourceSliceSpec.driverName: The driver.
NodeResourceSliceSpec.namedResourcesWithAttributes: The resources, if that is their model.
NamedResource.name: The name of the resource, unique for driver and node.
NamedResource.attributes: What the resource is like; selectors read it.
Attribute.name: The name of the attribute, unique in its resource.
ResourceSlice: Resources of a node, as a driver publishes them in Kubernetes 1.30.
ResourceSlice.nodeName: The node.
ResourceSlice.driverName: The driver.
ResourceSlice.namedResources: The resources, if that is their model.
"""
_PACKAGE: Final = "io.k8s.api.resource.v1alpha2"
_DOCS: Final = (parameters, references, resourceclaim, resourceclaimtemplate, resourceclass, resourceslice)
_READER: Final = structs.Reader(
    _PACKAGE,
    facts=notation.Types(_PACKAGE, _FACTS, numbers=_NUMBERS, texts=_TEXTS, docs=_DOCS, uses=(metatypes.META,)),
    elsewhere=notation.Types("", "", uses=(metatypes.META, core.REFERENCES)),
)


def schema(shape: type[meta.Object]) -> model.Object:
    """The type of a kind."""
    return _READER.kind(shape)
