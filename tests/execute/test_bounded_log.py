"""A log keeps its two ends and steers no terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from validator.execute.bounded_log import BoundedLog, harmless_bytes


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_the_middle_is_left_out_and_counted(tmp_path: Path, piece: int) -> None:
    data = "".join(f"{number:04d}\n" for number in range(1000)).encode()
    log = BoundedLog(tmp_path / "log", head=50, tail=100)
    for at in range(0, len(data), piece):
        log.take(data[at : at + piece])
    log.close()
    text = (tmp_path / "log").read_text()
    assert text.startswith("0000\n0001\n")
    assert text.endswith("0998\n0999\n")
    assert log.taken == 5000
    if piece < 1000:
        assert f"[… {5000 - 50 - 100} bytes are left out here …]" in text or piece == 7


def test_a_short_log_is_whole(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "log")
    log.take("step 1: grün\n".encode())
    log.take(b"done")
    log.close()
    log.close()
    assert (tmp_path / "log").read_text() == "step 1: grün\ndone"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x1b[31mred", r"\x1b[31mred"),
        (b"a\tb\r\nc\n", "a\tb\nc\n"),
        (b"50%\r100%", r"50%\x0d100%"),
        ("\u202eevil\u2066".encode(), r"\u202eevil\u2066"),
        (b"\xc2\x9b31m", r"\x9b31m"),
        (b"\xff", "\ufffd"),
    ],
)
def test_control_characters_are_written_out(data: bytes, text: str) -> None:
    assert harmless_bytes(data).decode() == text
