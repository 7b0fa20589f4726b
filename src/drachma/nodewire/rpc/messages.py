"""Protobuf message classes from readable tables, with the same encoding as generated code.

A line of a table is a message with its fields in the order of their numbers, which start at 1 unless a field has one:
``name=type@number``. An indented line continues the line before. A type is ``string``, ``bytes``, ``bool``,
``int32``, ``int64``, ``double``, the name of a message or an enum of the same table, ``[type]`` for a list, ``<type>``
for a map by text, and ``type?`` for a plain value that may be absent. An enum is ``Name: A | B``, from 0 on.
"""

import re
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
    "bool": _Field.TYPE_BOOL,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "double": _Field.TYPE_DOUBLE,
}
_FIELD: Final = re.compile(r"(?P<name>\w+)=(?P<type>[^@\s]+)(@(?P<number>\d+))?")


class Messages:
    """Message classes of one package, as attributes by their names."""

    def __init__(self, package: str, table: str) -> None:
        entries = [line.partition(":")[::2] for line in table.strip().replace("\n ", " ").splitlines()]
        enums = {name for name, content in entries if "|" in content}
        file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
        for name, content in entries:
            if name in enums:
                _add_enum(file.enum_type.add(name=name), content)
            else:
                _add_fields(file.message_type.add(name=name), content, package=package, enums=enums)
        # Each package has its own pool, because two packages are called v1.
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)
        self._classes: Final[dict[str, Any]] = {
            name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
            for name, _ in entries
            if name not in enums
        }

    def __getattr__(self, name: str) -> Any:
        try:
            return self._classes[name]
        except KeyError:
            raise AttributeError(name) from None


def _add_enum(enum: descriptor_pb2.EnumDescriptorProto, content: str) -> None:
    for number, value in enumerate(content.split("|")):
        enum.value.add(name=value.strip(), number=number)


def _add_fields(message: descriptor_pb2.DescriptorProto, content: str, *, package: str, enums: set[str]) -> None:
    for position, match in enumerate(_FIELD.finditer(content), start=1):
        kind, number = match["type"], int(match["number"] or position)
        field = message.field.add(name=match["name"], number=number, label=_Field.LABEL_OPTIONAL)
        if kind.startswith("["):
            kind, field.label = kind[1:-1], _Field.LABEL_REPEATED
        elif kind.startswith("<"):
            entry = message.nested_type.add(name=f"{match['name'].title().replace('_', '')}Entry")
            entry.options.map_entry = True
            _add_fields(entry, f"key=string value={kind[1:-1]}", package=package, enums=enums)
            field.label = _Field.LABEL_REPEATED
            _set_type(field, f"{message.name}.{entry.name}", package=package, enums=enums)
            continue
        elif kind.endswith("?"):
            kind, field.proto3_optional = kind[:-1], True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{match['name']}")
        _set_type(field, kind, package=package, enums=enums)


def _set_type(field: Any, kind: str, *, package: str, enums: set[str]) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
        return
    field.type = _Field.TYPE_ENUM if kind in enums else _Field.TYPE_MESSAGE
    field.type_name = f".{package}.{kind}"


REGISTRATION: Final = Messages(
    "pluginregistration",
    """\
PluginInfo: type=string name=string endpoint=string supported_versions=[string]
RegistrationStatus: plugin_registered=bool error=string
RegistrationStatusResponse:
InfoRequest:
""",
)

_DRA: Final = """\
Claim: namespace=string uid=string name=string
NodePrepareResourcesRequest: claims=[Claim]
NodePrepareResourcesResponse: claims=<NodePrepareResourceResponse>
NodePrepareResourceResponse: devices=[Device] error=string
NodeUnprepareResourcesRequest: claims=[Claim]
NodeUnprepareResourcesResponse: claims=<NodeUnprepareResourceResponse>
NodeUnprepareResourceResponse: error=string
Device: request_names=[string] pool_name=string device_name=string cdi_device_ids=[string]"""

DRA: Final = Messages("k8s.io.kubelet.pkg.apis.dra.v1", f"{_DRA} share_id=string?")
DRA_BETA: Final = Messages("k8s.io.kubelet.pkg.apis.dra.v1beta1", _DRA)
"""Messages without share ids."""
DRA_1_31: Final = Messages("v1alpha4", _DRA)
"""Messages of drivers of Kubernetes 1.31."""

_HEALTH: Final = """\
NodeWatchResourcesRequest:
NodeWatchResourcesResponse: devices=[DeviceHealth]
DeviceIdentifier: pool_name=string device_name=string
HealthStatus: UNKNOWN | HEALTHY | UNHEALTHY
DeviceHealth: device=DeviceIdentifier health=HealthStatus
 last_updated_time=int64 health_check_timeout_seconds=int64 message=string
"""

_STRUCTURED_HANDLE: Final = """\
StructuredResourceHandle: vendorClassParameters=RawExtension vendorClaimParameters=RawExtension nodeName=string@4
 results=[DriverAllocationResult]@5
DriverAllocationResult: vendorRequestParameters=RawExtension allocationResultModel=AllocationResultModel
AllocationResultModel: namedResources=NamedResourcesAllocationResult
NamedResourcesAllocationResult: name=string
RawExtension: raw=bytes
"""

DRA_1_30: Final = Messages(
    "v1alpha3",
    f"""\
NodePrepareResourcesRequest: claims=[Claim]
NodePrepareResourcesResponse: claims=<NodePrepareResourceResponse>
NodePrepareResourceResponse: cdi_devices=[string] error=string
NodeUnprepareResourcesRequest: claims=[Claim]
NodeUnprepareResourcesResponse: claims=<NodeUnprepareResourceResponse>
NodeUnprepareResourceResponse: error=string
Claim: namespace=string uid=string name=string resource_handle=string
 structured_resource_handle=[StructuredResourceHandle]
{_STRUCTURED_HANDLE}\
NodeListAndWatchResourcesRequest:
NodeListAndWatchResourcesResponse: resources=[ResourceModel]
ResourceModel: namedResources=NamedResourcesResources
NamedResourcesResources: instances=[NamedResourcesInstance]
NamedResourcesInstance: name=string attributes=[NamedResourcesAttribute]
NamedResourcesAttribute: name=string attributeValue=NamedResourcesAttributeValue
NamedResourcesAttributeValue: quantity=Quantity@6 bool=bool?@2 int=int64?@7 intSlice=NamedResourcesIntSlice@8
 string=string?@5 stringSlice=NamedResourcesStringSlice@9 version=string?@10
NamedResourcesIntSlice: ints=[int64]
NamedResourcesStringSlice: strings=[string]
Quantity: string=string
""",
)
"""Messages of drivers of Kubernetes 1.30: claims with their allocation, and reports of resources."""

DRA_SINGLE: Final = Messages(
    "v1alpha2",
    f"""\
NodePrepareResourceRequest: namespace=string claim_uid=string claim_name=string resource_handle=string
 structured_resource_handle=[StructuredResourceHandle]
NodePrepareResourceResponse: cdi_devices=[string]
NodeUnprepareResourceRequest: namespace=string claim_uid=string claim_name=string resource_handle=string
 structured_resource_handle=[StructuredResourceHandle]
NodeUnprepareResourceResponse:
{_STRUCTURED_HANDLE}""",
)
"""Messages of older drivers, with one call for each claim."""

HEALTH: Final = Messages("v1", _HEALTH)
HEALTH_ALPHA: Final = Messages("v1alpha1", _HEALTH)

POD_RESOURCES: Final = Messages(
    "v1",
    """\
ListPodResourcesRequest:
ListPodResourcesResponse: pod_resources=[PodResources]
AllocatableResourcesRequest:
AllocatableResourcesResponse: devices=[ContainerDevices] cpu_ids=[int64] memory=[ContainerMemory]
GetPodResourcesRequest: pod_name=string pod_namespace=string
GetPodResourcesResponse: pod_resources=PodResources
PodResources: name=string namespace=string containers=[ContainerResources] cpu_ids=[int64] memory=[ContainerMemory]
ContainerResources: name=string devices=[ContainerDevices] cpu_ids=[int64] memory=[ContainerMemory]
 dynamic_resources=[DynamicResource]
ContainerDevices: resource_name=string device_ids=[string] topology=TopologyInfo
ContainerMemory: memory_type=string size=int64 topology=TopologyInfo
TopologyInfo: nodes=[NUMANode]
NUMANode: ID=int64
DynamicResource: claim_name=string@2 claim_namespace=string@3 claim_resources=[ClaimResource]@4
ClaimResource: cdi_devices=[CDIDevice] driver_name=string pool_name=string device_name=string share_id=string?
CDIDevice: name=string
""",
)
