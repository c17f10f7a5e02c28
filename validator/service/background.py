"""What goes on beside answering requests: each loop in a thread of its own, none of them ends because one round
failed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

from validator.errors import ValidatorError
from validator.service.settings import Secret

log = logging.getLogger(__name__)

_LONGEST = 15.0


@final
@dataclass(slots=True)
class Loop:
    """Runs ``round`` every ``seconds``, or at once when woken; later and later while it fails. ``problem`` is what the
    last round ended with, empty where it went well.
    """

    name: str
    seconds: float
    round: Callable[[], object]
    problem: str = ""
    succeeded: float = 0.0
    _wake: threading.Event = field(default_factory=threading.Event)
    _stopped: bool = False
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There is something to do."""
        self._wake.set()

    def stop(self) -> None:
        """End after the round that goes on."""
        self._stopped = True
        self._wake.set()

    def join(self, seconds: float) -> None:
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        failures = 0
        while not self._stopped:
            self._wake.clear()
            try:
                self.round()
                if self.problem:
                    log.info("%s: goes on", self.name)
                self.problem, failures, self.succeeded = "", 0, time.time()
            except ValidatorError as error:
                failures += 1
                if str(error) != self.problem:
                    log.warning("%s: %s", self.name, error)
                self.problem = str(error)
            except Exception as error:  # a defect in one round must not end the service's work
                failures += 1
                log.exception("%s failed", self.name)
                self.problem = f"A defect of the service: {type(error).__name__}."
            pause = self.seconds if not failures else min(_LONGEST, max(self.seconds, 0.5) * 2 ** min(failures, 8))
            self._wake.wait(pause)


class Redacting(logging.Filter):
    """Takes secrets out of log records, whoever wrote them."""

    def __init__(self, secrets: tuple[Secret, ...]) -> None:
        super().__init__()
        # A key is many lines: each of them counts.
        lines = {line.strip() for secret in secrets for line in secret.reveal().splitlines()}
        self._secrets = sorted((line for line in lines if len(line) >= 6), key=len, reverse=True)

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if any(secret in text for secret in self._secrets):
            record.msg, record.args = self.clean(text), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = self.clean(logging.Formatter().formatException(record.exc_info))
        return True

    def clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return text
