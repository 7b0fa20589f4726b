"""Explanations of pending workloads: the shortage, the holders, the effect of preemption, and changes that would help.

Explanations are next to admission, not inside it, so admission pays nothing for them. Every answer comes from the code
that decides: a question is a cycle on the snapshot, or on a simulated change of a quota or of workloads.
"""

from drachma.queueing.explanation.rendering import render, to_document
from drachma.queueing.explanation.workloadexplanation import Outcome, WorkloadExplanation, explain

__all__ = ["Outcome", "WorkloadExplanation", "explain", "render", "to_document"]
