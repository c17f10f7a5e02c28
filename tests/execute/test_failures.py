"""One sentence out of a failed launch's log."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from validator.execute.failures import explain, read_tail

TORCHRUN_KILLED = (
    "W1129 12:00:00 torch/distributed/elastic/multiprocessing/api.py:908] Sending process 11 closing signal SIGTERM\n"
    "E1129 12:00:00 torch/distributed/elastic/multiprocessing/api.py:837] "
    "failed (exitcode: -9) local_rank: 1 (pid: 12) of binary: /env/bin/python\n"
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
)

CASES = {
    "validator: Megatron 0.16.1 lacks megatron.training.\nRuntimeError: x\n": "Megatron 0.16.1 lacks megatron.training",
    "[rank0]: ModuleNotFoundError: No module named 'einops'\n": "lacks the Python package 'einops'",
    "[rank0]: ModuleNotFoundError: No module named 'einops.layers'\n": "lacks the Python module 'einops.layers'",
    "RuntimeError: x\nOSError: [Errno 28] No space left on device: 'y'\n": "no space was left",
    TORCHRUN_KILLED: "rank 1 was ended by signal 9 (SIGKILL)",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n": "it ran out of memory",
    "[rank1]: ValueError: heads must divide.\nChildFailedError: \n": "ValueError: heads must divide",
    "[rank0]: RuntimeError: Connection closed by peer\n[rank1]: KeyError: 'lr'\n": "KeyError: 'lr'",
    "nothing of note\n": "it exited with code 7",
}


@pytest.mark.parametrize(("text", "expected"), CASES.items(), ids=range(len(CASES)))
def test_the_clause_that_tells_most(tmp_path: Path, text: str, expected: str) -> None:
    log = tmp_path / "log.txt"
    log.write_text(text)
    assert expected in explain(log, 7, Path("/env/bin/python"))


def test_of_several_sentences_of_ours_the_last_counts(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("validator: first.\nvalidator: last.\n")
    assert explain(log, 1, Path("python")) == "last"


#: As much as is read of a log, 256 KiB, of what makes a careless pattern look again and again.
LONG = {
    "line feeds": "\n" * (1 << 18),
    "spaces": " " * (1 << 18),
    "lines of spaces": ("\n" + " " * 63) * (1 << 12),
    "prefixes": "validator:" * ((1 << 18) // 10),
    "lines of prefixes": "validator:\n" * ((1 << 18) // 11),
    "prefixes and line feeds": "[rank0]:" + "\n" * (1 << 17) + "[rank0]:\n" * ((1 << 17) // 9),
    "words": "Error." * ((1 << 18) // 6),
    "exit codes": "exitcode: -" + "9" * (1 << 17) + "\n" + "exitcode: -9" * ((1 << 17) // 12),
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_no_log_takes_long(tmp_path: Path, text: str) -> None:
    log = tmp_path / "log.txt"
    log.write_text(text)
    started = time.process_time()
    assert explain(log, 7, Path("python"), 9) == "it exited with code 7"
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "text", [f"exitcode: -{'9' * 5000}) local_rank: 0", f"exitcode: -9) local_rank: {'9' * 5000}"], ids=["code", "rank"]
)
def test_a_number_without_end_is_none(tmp_path: Path, text: str) -> None:
    log = tmp_path / "log.txt"
    log.write_text(text)
    assert explain(log, 7, Path("python")) == "it exited with code 7"


@pytest.mark.parametrize(
    "text",
    [
        "validator: " + "x" * 100_000 + " end.\n",
        "ValueError: " + "x" * 100_000 + " end.\n",
        f"ModuleNotFoundError: No module named '{'x' * 100_000}'\nValueError: end\n",
    ],
    ids=["own", "error", "package"],
)
def test_what_is_quoted_is_short_and_says_where_it_was_cut(tmp_path: Path, text: str) -> None:
    log = tmp_path / "log.txt"
    log.write_text(text)
    clause = explain(log, 1, Path("python"))
    assert len(clause) == 300
    assert "…" in clause
    assert clause.endswith((" end", "x'"))


def test_a_sentence_is_on_one_line(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("[rank0]:\n\nvalidator: own.\nvalidator: ...\n")
    assert explain(log, 1, Path("python")) == "own"


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read_tail(tmp_path / "none") == ""


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_bytes(b"validator: early.\n" + b"x" * 10_000_000 + b"\nValueError: late\n")
    assert explain(log, 1, Path("python")) == "ValueError: late"
