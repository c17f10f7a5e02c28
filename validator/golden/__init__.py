"""The golden store: find, approve, verify, history."""

from validator.golden.approval import LEAST_LAUNCHES, Approval
from validator.golden.drift import DRIFT_METRICS, LARGE_DRIFT, measure_drift
from validator.golden.history import Commit, NoHistoryError
from validator.golden.record import Drift, GoldenRecord
from validator.golden.store import Golden, GoldenStore
from validator.golden.verification import Verification, Version, log, verify

__all__ = [
    "DRIFT_METRICS",
    "LARGE_DRIFT",
    "LEAST_LAUNCHES",
    "Approval",
    "Commit",
    "Drift",
    "Golden",
    "GoldenRecord",
    "GoldenStore",
    "NoHistoryError",
    "Verification",
    "Version",
    "log",
    "measure_drift",
    "verify",
]
