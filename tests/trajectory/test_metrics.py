from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validator.trajectory.metrics import Metric, ulp_distance


@pytest.mark.parametrize(
    ("dtype", "value", "bits"),
    [
        ("float64", 1.0, "3ff0000000000000"),
        ("float64", -0.0, "8000000000000000"),
        ("float32", 1.0, "3f800000"),
        ("float32", 0.1, "3dcccccd"),
        ("int64", -1, "ffffffffffffffff"),
    ],
)
def test_bits_of_known_values(dtype: str, value: float, bits: str) -> None:
    assert Metric.of(value, dtype) == Metric(dtype, bits)


def test_bfloat16_is_the_upper_half_of_float32() -> None:
    assert Metric("bfloat16", "3f80").value == 1.0
    assert Metric("bfloat16", "ff80").value == -math.inf


@pytest.mark.parametrize("dtype", ["bfloat16", "float8"])
def test_a_dtype_that_is_not_made_from_values_is_refused(dtype: str) -> None:
    with pytest.raises(ValueError, match=dtype):
        Metric.of(1.0, dtype)


@given(st.floats(allow_nan=False))
def test_float64_keeps_every_value(value: float) -> None:
    assert struct.pack("<d", Metric.of(value).value) == struct.pack("<d", value)


@given(st.floats(allow_nan=False, allow_infinity=False, max_value=1e308, min_value=-1e308))
def test_the_next_float_is_one_ulp_away(value: float) -> None:
    distance = ulp_distance(Metric.of(value), Metric.of(math.nextafter(value, math.inf)))
    # From −0.0 the next other value is beyond +0.0.
    assert distance == (2 if value == 0 and math.copysign(1, value) < 0 else 1)


def test_ulps_across_zero() -> None:
    assert ulp_distance(Metric.of(-0.0), Metric.of(0.0)) == 1
    assert ulp_distance(Metric("bfloat16", "3f80"), Metric("bfloat16", "3f83")) == 3
    assert ulp_distance(Metric.of(1.0, "float32"), Metric("float32", "3f800005")) == 5


def test_no_ulps_without_a_common_scale() -> None:
    assert ulp_distance(Metric.of(1.0), Metric.of(1.0, "float32")) is None
    assert ulp_distance(Metric.of(1, "int64"), Metric.of(2, "int64")) is None
    assert ulp_distance(Metric.of(math.nan), Metric.of(1.0)) is None
