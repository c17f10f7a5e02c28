"""What a self-test's record says, as samples. It is read as anybody's file: it may be broken or of another version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from validator.errors import ValidatorError
from validator.metrics.families import Sample

SCHEMA, VERSION = "validator/selftest", 1


class SelfTestRecordError(ValidatorError):
    """A file that is no whole record of a self-test."""


def checked_selftest(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """``content`` where it is a whole record of this version; else raises ``SelfTestRecordError``, naming ``name``."""
    if content.get("version") != VERSION:
        raise SelfTestRecordError(
            f"{name} is of version {content.get('version')!r}; this validator reads version {VERSION}."
        )
    try:
        datetime.fromisoformat(content["started"])
        texts = [content["pipeline"], content["hardware_class"], *content["stamps"]]
        shares = [content["rates"][rate] for rate in ("caught", "named")]
        counts = [share[key] for share in shares for key in ("part", "whole")]
        if not all(isinstance(text, str) for text in texts) or not isinstance(content["quick"], bool):
            raise ValueError("a value of another type")
        if not all(isinstance(count, int) and count >= 0 for count in counts):
            raise ValueError("a count of another type")
        if any(share["part"] > share["whole"] for share in shares) or not content["seconds"] >= 0:
            raise ValueError("counts that do not go together")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SelfTestRecordError(
            f"{name} is broken: what a self-test's record holds is missing or wrong ({error})."
        ) from error
    return content


def selftest_samples(record: Mapping[str, Any]) -> Iterator[Sample]:
    """Rates of a self-test over its effective faults; a quick one belongs to no curve and gives nothing."""
    if record["quick"]:
        return
    key = {"pipeline": record["pipeline"], "hardware_class": record["hardware_class"]}
    rates = record["rates"]
    for rate in ("caught", "named"):
        part, whole = rates[rate]["part"], rates[rate]["whole"]
        if whole:
            yield Sample(f"validator_selftest_{rate}_ratio", key, part / whole)
    yield Sample("validator_selftest_effective_faults", key, float(rates["caught"]["whole"]))
    ended = datetime.fromisoformat(record["started"]).timestamp() + record["seconds"]
    yield Sample("validator_selftest_timestamp_seconds", key, ended)
