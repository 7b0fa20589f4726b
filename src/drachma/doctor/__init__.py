"""Doctor: finds mistakes in how a cluster uses Dynamic Resource Allocation, and the safe repair for each.

Checks are pure functions over the objects of a cluster. Reading a cluster and carrying out repairs are separate.
"""

from drachma.doctor.cluster import Cluster
from drachma.doctor.examination import examine
from drachma.doctor.finding import Finding, Repair, Severity

__all__ = ["Cluster", "Finding", "Repair", "Severity", "examine"]
