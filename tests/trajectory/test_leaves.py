from __future__ import annotations

import struct
import subprocess
import sys

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from validator.trajectory.known_answers import KNOWN_ANSWERS, check_known_answers, expected_answers
from validator.trajectory.leaves import (
    ALGORITHMS,
    MIXSUM,
    Algorithm,
    LeafKey,
    LeafTable,
    fold_group,
    fold_named,
    leaf_digest,
)

KEY = LeafKey("weight", "float32", (2, 4))


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=lambda algorithm: algorithm.name)
def test_the_digest_reproduces_the_known_answers(algorithm: Algorithm) -> None:
    answers = check_known_answers(lambda key, content: leaf_digest(key, content, algorithm))
    assert answers == expected_answers(algorithm)


def test_the_algorithms_have_no_answer_in_common() -> None:
    assert not set(expected_answers().values()) & set(expected_answers(MIXSUM).values())


def test_known_answers_cover_every_path_of_the_hash() -> None:
    lengths = [len(content) for _, content, *_ in KNOWN_ANSWERS]
    for low, high in [(0, 0), (1, 3), (4, 8), (9, 16), (17, 128), (129, 240), (241, 1024), (1025, 10**9)]:
        assert any(low <= length <= high for length in lengths), (low, high)
    assert len(set(expected_answers().values())) == len(KNOWN_ANSWERS)


def test_a_published_vector_of_xxh3_128() -> None:
    # The empty input with seed 0, from xxHash's own test vectors.
    assert xxhash.xxh3_128_hexdigest(b"") == "99aa06d3014798d86001c324468d497f"


def test_a_constant_recorder_fails_the_known_answers() -> None:
    assert check_known_answers(lambda _key, _content: bytes(16)) != expected_answers()


def test_two_differing_rows_swapped_change_the_digest() -> None:
    first, second = struct.pack("<4f", 1, 2, 3, 4), struct.pack("<4f", 5, 6, 7, 8)
    assert leaf_digest(KEY, first + second) != leaf_digest(KEY, second + first)


def test_the_sign_of_zero_changes_the_digest() -> None:
    key = LeafKey("x", "float32", ())
    assert leaf_digest(key, struct.pack("<f", 0.0)) != leaf_digest(key, struct.pack("<f", -0.0))


def test_the_payload_of_nan_changes_the_digest() -> None:
    key = LeafKey("x", "float32", ())
    assert leaf_digest(key, struct.pack("<I", 0x7FC00000)) != leaf_digest(key, struct.pack("<I", 0x7FC00001))


@pytest.mark.parametrize(
    "other",
    [
        LeafKey("weight", "int32", (2, 4)),
        LeafKey("weight", "float32", (4, 2)),
        LeafKey("weight", "float32", (8,)),
        LeafKey("weight", "float32", (2, 4), "0:8/16"),
    ],
)
def test_dtype_shape_and_shard_are_bound(other: LeafKey) -> None:
    assert leaf_digest(other, bytes(32)) != leaf_digest(KEY, bytes(32))


def test_the_name_is_bound_in_the_fold_and_not_in_the_leaf() -> None:
    renamed = LeafKey("kernel", "float32", (2, 4))
    digest = leaf_digest(KEY, bytes(32))
    assert leaf_digest(renamed, bytes(32)) == digest
    assert fold_group(LeafTable((renamed,)), digest) != fold_group(LeafTable((KEY,)), digest)


@given(st.binary(min_size=1, max_size=600), st.data())
def test_any_flipped_bit_changes_the_digest(content: bytes, data: st.DataObject) -> None:
    bit = data.draw(st.integers(0, len(content) * 8 - 1))
    flipped = bytearray(content)
    flipped[bit // 8] ^= 1 << (bit % 8)
    assert leaf_digest(KEY, flipped) != leaf_digest(KEY, content)


@given(st.lists(st.binary(min_size=16, max_size=16), min_size=2, max_size=6, unique=True), st.data())
def test_the_fold_sees_order(digests: list[bytes], data: st.DataObject) -> None:
    table = LeafTable(tuple(LeafKey(str(index), "bytes", ()) for index in range(len(digests))))
    shuffled = data.draw(st.permutations(digests))
    same = shuffled == digests
    assert (fold_group(table, b"".join(shuffled)) == fold_group(table, b"".join(digests))) is same
    named = fold_named((str(index), digest) for index, digest in enumerate(digests))
    assert (fold_named((str(index), digest) for index, digest in enumerate(shuffled)) == named) is same


def test_names_cannot_run_into_digests() -> None:
    assert fold_named([("a", b"bc")]) != fold_named([("ab", b"c")])


def test_the_writing_side_needs_neither_numpy_nor_torch() -> None:
    program = (
        "import sys, validator.trajectory.writer, validator.trajectory.groups\n"
        "print(sorted({'numpy', 'torch', 'yaml'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
