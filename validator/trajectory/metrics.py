"""Metrics with their exact bits."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: dtype -> (bytes, struct format of the same-width unsigned integer, struct format of the value or None for bfloat16)
_FORMATS = {"float64": (8, "Q", "d"), "float32": (4, "I", "f"), "bfloat16": (2, "H", None), "int64": (8, "Q", "q")}

#: dtype -> whether a text is the bits of a value of that dtype
_BITS = {dtype: re.compile(f"[0-9a-f]{{{2 * width}}}").fullmatch for dtype, (width, *_) in _FORMATS.items()}


@dataclass(frozen=True, slots=True)
class Metric:
    """One scalar as it was, bit for bit: ``bits`` is the big-endian hexadecimal of the value's own width."""

    dtype: str
    bits: str

    @property
    def value(self) -> float | int:
        """The value as a Python number (exact: float64 holds every float32 and bfloat16)."""
        raw = int(self.bits, 16)
        if self.dtype == "bfloat16":
            return float(struct.unpack("<f", struct.pack("<I", raw << 16))[0])
        _, unsigned, signed = _FORMATS[self.dtype]
        assert signed is not None
        number: float | int = struct.unpack("<" + signed, struct.pack("<" + unsigned, raw))[0]
        return number

    @classmethod
    def of(cls, value: float | int, dtype: str = "float64") -> Metric:
        """The metric that holds ``value`` in ``float64``, ``float32`` (rounded to it) or ``int64``.

        ``ValueError`` for any other dtype.
        """
        width, unsigned, form = _FORMATS.get(dtype, (0, "", None))
        if form is None:
            raise ValueError(f"a metric of dtype {dtype!r} is made from its bits; values: float64, float32, int64")
        raw = struct.unpack("<" + unsigned, struct.pack("<" + form, value))[0]
        return cls(dtype, f"{raw:0{width * 2}x}")


def parse_metric(fields: Mapping[str, Any]) -> tuple[str, Metric]:
    """Name and value of a ``metric`` line. ``ValueError``, ``TypeError`` or ``KeyError`` where it is none."""
    name, dtype, bits = fields["metric"], fields["dtype"], fields["bits"]
    if not isinstance(name, str) or "\n" in name:
        raise ValueError("a metric without a name of one line")
    if dtype not in _BITS or _BITS[dtype](bits) is None:
        raise ValueError("a metric whose bits do not fit its dtype")
    name.encode()  # half a character is a ValueError
    return name, Metric(dtype, bits)


def ulp_distance(left: Metric, right: Metric) -> int | None:
    """Units in the last place between two values of one floating dtype.

    ``None`` for NaN, integers or unequal dtypes. −0.0 and +0.0 are one apart.
    """
    if left.dtype != right.dtype or left.dtype == "int64":
        return None
    if math.isnan(left.value) or math.isnan(right.value):
        return None
    return abs(_ordinal(left) - _ordinal(right))


def _ordinal(metric: Metric) -> int:
    """Position of a float among all floats of its width, −0.0 just below +0.0."""
    width = _FORMATS[metric.dtype][0] * 8
    raw = int(metric.bits, 16)
    sign = 1 << (width - 1)
    return raw if raw < sign else sign - 1 - raw
