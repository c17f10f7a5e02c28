"""A token corpus with structure that a model can learn, generated from integers only: the same bytes on every
machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_MASK = (1 << 64) - 1


def _mix(value: int) -> int:
    """SplitMix64's finaliser (Steele, Lea and Flood 2014): one well-mixed 64-bit integer from another."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def documents(corpus: Mapping[str, int]) -> Iterator[list[int]]:
    """Yield ``corpus["documents"]`` documents of 32 to 159 tokens below ``corpus["vocabulary"] - 1``.

    A token is followed three times out of four by its one usual successor, else by a random one, so that the
    next-token loss can fall well below that of a uniform guess. The last id of the vocabulary is the end-of-document
    token, once at each end.
    """
    end_of_document = corpus["vocabulary"] - 1
    seed = _mix(corpus["seed"])
    for document in range(corpus["documents"]):
        state = _mix(seed ^ document)
        token = state % end_of_document
        tokens = [token]
        for _ in range(32 + (state >> 32) % 128):
            state = _mix(state)
            usual = _mix(seed + token) % end_of_document
            token = usual if state & 3 else (state >> 8) % end_of_document
            tokens.append(token)
        tokens[-1] = end_of_document
        yield tokens
