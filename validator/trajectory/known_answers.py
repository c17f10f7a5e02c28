"""Known answers: contents whose digests a sound recorder must reproduce, asked for in every launch."""

from __future__ import annotations

from collections.abc import Callable

from validator.trajectory.leaves import XXH3, Algorithm, LeafKey, leaf_digest


def _pattern(size: int) -> bytes:
    """``size`` bytes 0, 1, …, 250, 0, 1, …: a period that fits no word or stripe of the hash."""
    period = bytes(range(251))
    return (period * (size // len(period) + 1))[:size]


#: (leaf, content, its digests in hex: XXH3-128, mixsum): what a sound recorder must reproduce. The lengths take each
#: path of XXH3: 0, 1 to 3, 4 to 8, 9 to 16, 17 to 128, 129 to 240 and more than 240 bytes, one block and many; and of
#: mixsum: whole words and cut ones, one piece of a kernel's work and many. The digests were computed by other programs
#: than those that are tested with them: the C library xxHash 0.8.1, and the formula of mixsum written in C.
KNOWN_ANSWERS: tuple[tuple[LeafKey, bytes, str, str], ...] = (
    (LeafKey("empty", "bytes", (0,)), b"", "bad6da9e458675050a6e1023f9c8e901", "27b99179009806f20166e1a5a1a40be3"),
    (
        LeafKey("one byte", "bytes", (1,)),
        b"\xa5",
        "3b45c3dc4a1dfac2c9d4a19817e750db",
        "8927abb381d4a3f82e5b954319f0c908",
    ),
    (
        LeafKey("bfloat16 ones", "bfloat16", (2, 4)),
        b"\x80\x3f" * 8,
        "e246bef487c2ab16b5fcb478bb7c255c",
        "755ffe852c7f095297553443b2eccad7",
    ),
    (
        LeafKey("bfloat16 pattern", "bfloat16", (60,)),
        _pattern(120),
        "5680c37eea60c31a759117dc662a8c9a",
        "b224228d847f6649903805715de374f3",
    ),
    (
        LeafKey("float32 pattern", "float32", (60,)),
        _pattern(240),
        "d822ff93fa61f2404b043a38e029267c",
        "0095b8c3a36c0bb837ab8223e1315e3e",
    ),
    (
        LeafKey("float32 long", "float32", (61,)),
        _pattern(244),
        "346a42450de10f08ddc9438e9fa522c8",
        "302c240a163de2acde62be737914f50c",
    ),
    (
        LeafKey("float32 shard", "float32", (16, 16), "64:125/256"),
        _pattern(244),
        "29a0abeb116c4afdca45fd72ba6b4a76",
        "57e9ba4cfa6d9f563f8e418e18223cd8",
    ),
    (
        LeafKey("bfloat16 long", "bfloat16", (17, 241)),
        _pattern(8194),
        "86b43cada2b43a4ea61c6f4c75379e41",
        "975db02dc4ba6fbe22290c668468d922",
    ),
    (
        LeafKey("opaque state", "bytes", (5000,)),
        _pattern(5000),
        "f4b92cdd2dd737686426e07d74d5a85a",
        "a8968f88f8f27a75f29fc29445e1e547",
    ),
    (
        LeafKey("float32 1 MiB", "float32", (512, 512)),
        _pattern(1 << 20),
        "a6c5732553c20ca1d91976a4b1a53e41",
        "56608eb91b1bd588e97885d26d573631",
    ),
    (
        LeafKey("positive zero", "float32", ()),
        bytes.fromhex("00000000"),
        "87de04c7670d3861426543a37a320a5d",
        "e39b52b553364ecc3c34f1a0973086bc",
    ),
    (
        LeafKey("negative zero", "float32", ()),
        bytes.fromhex("00000080"),
        "052ac6ac5443a3dd731abfd6fe795df3",
        "ee1ea48bdd35d2585e1a8d4bcaf01fa0",
    ),
    (
        LeafKey("quiet NaN", "float32", ()),
        bytes.fromhex("0000c07f"),
        "90de7b75a86328dff9c782af1b54a1eb",
        "994f9e356a0e7398aff42eb2a164d35e",
    ),
    (
        LeafKey("NaN with payload", "float32", ()),
        bytes.fromhex("0100c07f"),
        "190c1e72c64f5dcf57136c9b6cfa432a",
        "670223e3b997fcec87fa33db8387a913",
    ),
)


def check_known_answers(digest: Callable[[LeafKey, bytes], bytes] = leaf_digest) -> dict[str, str]:
    """What ``digest``, a recorder's own way to digest a leaf, answers: name of the vector -> hex.

    A sound recorder's answers equal ``expected_answers()`` of its algorithm; whoever asked compares.
    """
    return {key.name: digest(key, content).hex() for key, content, *_ in KNOWN_ANSWERS}


def expected_answers(algorithm: Algorithm = XXH3) -> dict[str, str]:
    """What ``check_known_answers`` must return: name of the vector -> hex."""
    return {key.name: xxh3 if algorithm is XXH3 else mixsum for key, _, xxh3, mixsum in KNOWN_ANSWERS}
