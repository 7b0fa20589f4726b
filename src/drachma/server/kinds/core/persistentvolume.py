"""Volumes of a cluster, as objects: nothing provides or attaches them here."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.api import meta
from drachma.server import objectmeta
from drachma.server.kinds.core import references, volumetypes
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import persistentvolume
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
AzureFilePersistentVolumeSource: readOnly=bool secretName=str* secretNamespace=str? shareName=str*
CSIPersistentVolumeSource: controllerExpandSecretRef=SecretReference controllerPublishSecretRef=SecretReference
    driver=str* fsType=str nodeExpandSecretRef=SecretReference nodePublishSecretRef=SecretReference
    nodeStageSecretRef=SecretReference readOnly=bool volumeAttributes=<str> volumeHandle=str*
CephFSPersistentVolumeSource: monitors=[str]!* path=str readOnly=bool secretFile=str secretRef=SecretReference
    user=str
CinderPersistentVolumeSource: fsType=str readOnly=bool secretRef=SecretReference volumeID=str*
FlexPersistentVolumeSource: driver=str* fsType=str options=<str> readOnly=bool secretRef=SecretReference
GlusterfsPersistentVolumeSource: endpoints=str* endpointsNamespace=str? path=str* readOnly=bool
ISCSIPersistentVolumeSource: chapAuthDiscovery=bool chapAuthSession=bool fsType=str initiatorName=str? iqn=str*
    iscsiInterface=str/default lun=int32* portals=[str] readOnly=bool secretRef=SecretReference targetPortal=str*
LocalVolumeSource: fsType=str? path=str*
PersistentVolume: apiVersion=str kind=str metadata=ObjectMeta! spec=PersistentVolumeSpec!
    status=PersistentVolumeStatus!
PersistentVolumeSpec: accessModes=[str] awsElasticBlockStore=AWSElasticBlockStoreVolumeSource
    azureDisk=AzureDiskVolumeSource azureFile=AzureFilePersistentVolumeSource capacity=<Quantity>
    cephfs=CephFSPersistentVolumeSource cinder=CinderPersistentVolumeSource claimRef=ObjectReference
    csi=CSIPersistentVolumeSource fc=FCVolumeSource flexVolume=FlexPersistentVolumeSource flocker=FlockerVolumeSource
    gcePersistentDisk=GCEPersistentDiskVolumeSource glusterfs=GlusterfsPersistentVolumeSource
    hostPath=HostPathVolumeSource iscsi=ISCSIPersistentVolumeSource local=LocalVolumeSource mountOptions=[str]
    nfs=NFSVolumeSource nodeAffinity=VolumeNodeAffinity persistentVolumeReclaimPolicy=str
    photonPersistentDisk=PhotonPersistentDiskVolumeSource portworxVolume=PortworxVolumeSource
    quobyte=QuobyteVolumeSource rbd=RBDPersistentVolumeSource scaleIO=ScaleIOPersistentVolumeSource
    storageClassName=str storageos=StorageOSPersistentVolumeSource volumeAttributesClassName=str? volumeMode=str?
    vsphereVolume=VsphereVirtualDiskVolumeSource
PersistentVolumeStatus: lastPhaseTransitionTime=Time message=str phase=str reason=str
RBDPersistentVolumeSource: fsType=str image=str* keyring=str//etc/ceph/keyring monitors=[str]!* pool=str/rbd
    readOnly=bool secretRef=SecretReference user=str/admin
ScaleIOPersistentVolumeSource: fsType=str/xfs gateway=str* protectionDomain=str readOnly=bool
    secretRef=SecretReference* sslEnabled=bool storageMode=str/ThinProvisioned storagePool=str system=str*
    volumeName=str
SecretReference!: name=str namespace=str
StorageOSPersistentVolumeSource: fsType=str readOnly=bool secretRef=ObjectReference volumeName=str volumeNamespace=str
TopologySelectorLabelRequirement: key=str* values=[str]!*
TopologySelectorTerm!: matchLabelExpressions=[TopologySelectorLabelRequirement]
VolumeNodeAffinity: required=NodeSelector
"""
_NUMBERS: Final = """\
AzureFilePersistentVolumeSource: secretName shareName readOnly secretNamespace?
CSIPersistentVolumeSource: driver volumeHandle readOnly fsType volumeAttributes controllerPublishSecretRef
    nodeStageSecretRef nodePublishSecretRef controllerExpandSecretRef nodeExpandSecretRef
CephFSPersistentVolumeSource: monitors path user secretFile secretRef readOnly
CinderPersistentVolumeSource: volumeID fsType readOnly secretRef
FlexPersistentVolumeSource: driver fsType secretRef readOnly options
GlusterfsPersistentVolumeSource: endpoints path readOnly endpointsNamespace?
ISCSIPersistentVolumeSource: targetPortal iqn lun iscsiInterface fsType readOnly portals chapAuthDiscovery
    10:secretRef chapAuthSession initiatorName?
LocalVolumeSource: path fsType?
PersistentVolume: metadata spec status
PersistentVolumeSource: gcePersistentDisk awsElasticBlockStore hostPath glusterfs nfs rbd iscsi cinder cephfs fc
    flocker flexVolume azureFile vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO local
    storageos csi
PersistentVolumeSpec: capacity +PersistentVolumeSource accessModes claimRef persistentVolumeReclaimPolicy
    storageClassName mountOptions volumeMode? nodeAffinity volumeAttributesClassName?
PersistentVolumeStatus: phase message reason lastPhaseTransitionTime
RBDPersistentVolumeSource: monitors image fsType pool user keyring secretRef readOnly
ScaleIOPersistentVolumeSource: gateway system secretRef sslEnabled protectionDomain storagePool storageMode volumeName
    fsType readOnly
SecretReference: name namespace
StorageOSPersistentVolumeSource: volumeName volumeNamespace fsType readOnly secretRef
TopologySelectorLabelRequirement: key values
TopologySelectorTerm: matchLabelExpressions
VolumeNodeAffinity: required
"""
_TEXTS: Final = """\
PersistentVolume: A volume that the cluster has.
"""
VOLUMES: Final = notation.Types(
    "io.k8s.api.core.v1",
    _TYPES,
    numbers=_NUMBERS,
    texts=_TEXTS,
    uses=(metatypes.META, references.REFERENCES, volumetypes.VOLUMES),
)
"""The types of volumes, which attachments may have inline."""


class PersistentVolumeStrategy(DocumentStrategy):
    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        status = content["status"] = dict(content.get("status") or {})
        if not status.get("phase"):
            status["phase"] = "Pending"
        spec = content["spec"] = dict(content.get("spec") or {})
        if not spec.get("persistentVolumeReclaimPolicy"):
            spec["persistentVolumeReclaimPolicy"] = "Retain"
        if spec.get("volumeMode") is None:
            spec["volumeMode"] = "Filesystem"
        if spec.get("hostPath") is not None and spec["hostPath"].get("type") is None:
            spec["hostPath"] = {**spec["hostPath"], "type": ""}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {"phase": "Pending", "lastPhaseTransitionTime": meta.time_text(write.now)}

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from persistentvolume.check(content["spec"])

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from persistentvolume.check_update(content["spec"], old["spec"])


def _cells(volume: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(volume, "spec"), cells.part(volume, "status")
    claim = cells.part(spec, "claimRef")
    phase = "Terminating" if cells.part(volume, "metadata").get("deletionTimestamp") else status.get("phase", "")
    return [
        cells.name(volume),
        str(cells.part(spec, "capacity").get("storage", "")),
        cells.access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase,
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        cells.since_creation(volume, now),
        spec.get("volumeMode") or "<unset>",
    ]


KIND: Final = Kind(
    group="",
    versions=("v1",),
    plural="persistentvolumes",
    kind="PersistentVolume",
    namespaced=False,
    short_names=("pv",),
    subresources=(resources.status(),),
    schemas={"v1": VOLUMES.object("PersistentVolume")},
    traits=resources.Traits(returns_deleted=True),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Capacity", "How large the volume is."),
            layout.text("Access Modes", "How the volume may be used."),
            layout.text("Reclaim Policy", "What becomes of the volume once nobody claims it."),
            layout.text("Status", "Whether the volume is claimed."),
            layout.text("Claim", "Who claims it."),
            layout.text("StorageClass", "The class of the volume."),
            layout.text("VolumeAttributesClass", "The class of the volume's attributes."),
            layout.text("Reason", "Why it is in that state."),
            layout.AGE,
            layout.wide("VolumeMode", "Whether the volume has a file system."),
        ),
        _cells,
    ),
    strategy=PersistentVolumeStrategy,
)
