"""The corpus as Megatron's indexed dataset, read back with Megatron's own reader."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.workload.isolated import isolated
from tests.workload.test_corpus import CORPUS, SHA256


def write_and_read(folder: str) -> None:
    from validator.workload.launch import prepare_device

    prepare_device("cpu")
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    from validator.workload.corpus import documents
    from validator.workload.data import write_corpus

    for name, corpus in (("small", CORPUS), ("large", {**CORPUS, "documents": 20, "vocabulary": 131072})):
        prefix = Path(folder) / "made" / name
        write_corpus(corpus, prefix)
        dataset = IndexedDataset(str(prefix))
        expected = list(documents(corpus))
        assert len(dataset) == len(expected)
        assert [dataset[index].tolist() for index in range(len(dataset))] == expected
        assert dataset.document_indices.tolist() == list(range(len(expected) + 1))
        assert str(dataset.index.dtype_size) == ("2" if name == "small" else "4")


@pytest.mark.slow
def test_megatron_reads_back_every_document(tmp_path: Path) -> None:
    isolated(write_and_read, str(tmp_path))
    assert hashlib.sha256((tmp_path / "made" / "small.bin").read_bytes()).hexdigest() == SHA256
