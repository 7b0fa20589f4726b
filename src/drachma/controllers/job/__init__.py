"""The job controller: pods that run until enough of them have succeeded; and the end of jobs some time after theirs."""

from drachma.controllers.job.jobcontroller import JobController
from drachma.controllers.job.timetolive import TimeToLive

__all__ = ["JobController", "TimeToLive"]
