"""The cron job controller: creates jobs from a template on a schedule."""

from drachma.controllers.cronjob.cronjobcontroller import CronJobController

__all__ = ["CronJobController"]
