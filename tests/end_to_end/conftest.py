"""What several end-to-end tests share: launches of real Megatron cost seconds."""

from __future__ import annotations

import pytest

from tests.end_to_end.command import Checked, check


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """The whole check of nemotron-cpu as it is shipped."""
    return check(tmp_path_factory.mktemp("sound"), "nemotron-cpu")
