"""The job controller: runs pods until enough of them have succeeded; and the deletion of finished jobs after a time."""

from drachma.controllers.job.jobcontroller import JobController
from drachma.controllers.job.timetolive import TimeToLive

__all__ = ["JobController", "TimeToLive"]
