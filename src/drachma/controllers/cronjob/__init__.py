"""The cron job controller: jobs of one template, made again and again at certain times."""

from drachma.controllers.cronjob.cronjobcontroller import CronJobController

__all__ = ["CronJobController"]
