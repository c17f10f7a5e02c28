"""The generated corpus: the same bytes everywhere, and something to learn in it."""

from __future__ import annotations

import hashlib
import math
import struct
from collections import Counter, defaultdict
from itertools import pairwise

from validator.workload.corpus import _mix, documents

#: The corpus of the shipped pipelines.
CORPUS = {"documents": 400, "vocabulary": 512, "seed": 7}

#: SHA-256 of its tokens as 16-bit little-endian numbers, found with another implementation, in C.
SHA256 = "8748a3f8dd4a339a92ea488856683f3d5d8e6bddc83b37661fae809e637e8ed2"


def test_the_mixing_function_is_splitmix64() -> None:
    """First outputs of the published generator for the seeds 0 and 1234567."""
    assert _mix(0) == 0xE220A8397B1DCDAF
    assert _mix(1234567) == 6457827717110365317


def test_the_shipped_corpus_has_these_bytes() -> None:
    digest = hashlib.sha256()
    for tokens in documents(CORPUS):
        digest.update(struct.pack(f"<{len(tokens)}H", *tokens))
    assert digest.hexdigest() == SHA256


def test_another_seed_gives_other_documents() -> None:
    first, other = list(documents(CORPUS)), list(documents({**CORPUS, "seed": 8}))
    assert not any(tokens in other for tokens in first)


def test_more_documents_begin_with_the_same_ones() -> None:
    assert list(documents({**CORPUS, "documents": 3})) == list(documents(CORPUS))[:3]


def test_each_document_ends_with_the_last_id_and_has_it_nowhere_else() -> None:
    found = list(documents(CORPUS))
    assert len(found) == 400
    for tokens in found:
        assert tokens[-1] == 511
        assert tokens.count(511) == 1
        assert min(tokens) >= 0
        assert 32 <= len(tokens) - 1 <= 159


def test_a_token_says_much_about_the_next() -> None:
    """Three of four tokens are followed by their usual successor: 0.75 · ln(4/3) + 0.25 · ln(4 · 511) ≈ 2.12 nats, far
    below the ln 511 ≈ 6.24 of a uniform guess. With few documents the counted entropy is lower still.
    """
    followers: dict[int, Counter[int]] = defaultdict(Counter)
    for tokens in documents({**CORPUS, "documents": 4000}):
        for token, following in pairwise(tokens[:-1]):
            followers[token][following] += 1
    total = sum(sum(counts.values()) for counts in followers.values())
    usual = sum(counts.most_common(1)[0][1] for counts in followers.values())
    assert len(followers) > 500
    # A random successor is the usual one by chance once in 511 times.
    assert abs(usual / total - (0.75 + 0.25 / 511)) < 0.01
    entropy = -sum(n / total * math.log(n / sum(c.values())) for c in followers.values() for n in c.values())
    assert 1.5 < entropy < 2.2
