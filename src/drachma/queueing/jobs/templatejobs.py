"""Table of the kinds of other projects whose jobs have pod templates at known places."""

from typing import Final

from drachma.queueing.configuration import frameworks
from drachma.queueing.jobs import kubeflowjobs, rayjobs
from drachma.queueing.jobs.templatejob import TemplateJob

_MODELS: Final[tuple[type[TemplateJob], ...]] = (
    kubeflowjobs.JAXJob,
    kubeflowjobs.MPIJob,
    kubeflowjobs.PaddleJob,
    kubeflowjobs.PyTorchJob,
    kubeflowjobs.TFJob,
    kubeflowjobs.XGBoostJob,
    rayjobs.RayCluster,
    rayjobs.RayJob,
)

ALL: Final = {
    name: model for name in frameworks.TEMPLATE_JOBS for model in _MODELS if model.kind == frameworks.KINDS[name]
}
"""Models by the name of their kind in configurations."""
