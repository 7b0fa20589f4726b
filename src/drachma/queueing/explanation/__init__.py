"""Why a workload waits, who has what it lacks, whom it may displace, and what would make it fit.

Beside admission, not inside it: who does not ask pays nothing. Every answer is taken from the code that decides: a
question is a cycle on the snapshot as it is, or as it would be with another quota or without some workload.
"""

from drachma.queueing.explanation.rendering import render, to_document
from drachma.queueing.explanation.workloadexplanation import Outcome, WorkloadExplanation, explain

__all__ = ["Outcome", "WorkloadExplanation", "explain", "render", "to_document"]
