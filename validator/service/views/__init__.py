"""What people and programs are shown: plain values, read from the database and the base revision."""

from validator.service.views.base import goldens, pipelines_of, waivers
from validator.service.views.jobs import PAGE, changes, deliveries, history, job_detail, list_jobs, values
from validator.service.views.models import (
    ChangeView,
    DeliveryView,
    Filters,
    GoldenView,
    HistoryRow,
    JobDetail,
    JobList,
    JobView,
    WaiverView,
)

__all__ = [
    "PAGE", "ChangeView", "DeliveryView", "Filters", "GoldenView", "HistoryRow", "JobDetail", "JobList", "JobView",
    "WaiverView", "changes", "deliveries", "goldens", "history", "job_detail", "list_jobs", "pipelines_of", "values",
    "waivers",
]  # fmt: skip
