"""Settings: where they come from, what is refused, and that no secret shows itself."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from validator.errors import UsageError
from validator.service.background import Redacting
from validator.service.database import Database
from validator.service.settings import Secret, Settings, read_settings, settings_table

ROOT = Path(__file__).parents[2]


def test_variables_win_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_text('port = 9000\nhost = "::1"\nrepositories = ["a/b", "c/d"]\n')
    settings = read_settings({"VALIDATOR_PORT": "9001", "VALIDATOR_SETTINGS": str(file)})
    assert (settings.port, settings.host, settings.attempts) == (9001, "::1", 3)
    assert settings.repositories == ("a/b", "c/d")


def test_a_secret_may_come_from_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from a file\n")
    settings = read_settings({"VALIDATOR_WEBHOOK_SECRET_FILE": str(tmp_path / "secret")})
    assert settings.webhook_secret.reveal() == "from a file"


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"VALIDATOR_PORT": "many"}, "VALIDATOR_PORT is 'many', which is no number."),
        ({"VALIDATOR_PORT": "70000"}, "VALIDATOR_PORT is 70000; a port is 0 to 65535."),
        ({"VALIDATOR_ENGINE": "cron"}, "VALIDATOR_ENGINE is 'cron'; it is one of local, actions, slurm."),
        ({"VALIDATOR_REPOSITORIES": "t"}, "VALIDATOR_REPOSITORIES has 't'; a repository is written OWNER/NAME."),
        (
            {"VALIDATOR_ENGINE": "actions"},
            "VALIDATOR_ENGINE is actions, but VALIDATOR_WORKFLOW names no workflow to dispatch.",
        ),
        ({"VALIDATOR_ATTEMPTS": "0"}, "VALIDATOR_ATTEMPTS is 0; it is larger than 0."),
        (
            {"VALIDATOR_GITHUB_APP": "1"},
            "VALIDATOR_GITHUB_APP is set, but VALIDATOR_GITHUB_PRIVATE_KEY is not; an App has both.",
        ),
        (
            {"VALIDATOR_SETTINGS": "/nowhere.toml"},
            "The settings file /nowhere.toml cannot be read (No such file or directory).",
        ),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_what_is_accepted(variables: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        read_settings(variables)
    assert str(error.value) == sentence
    assert error.value.exit_code == 2


def test_a_name_that_is_no_setting_is_refused(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text("prot = 1\n")
    with pytest.raises(UsageError, match="sets 'prot', which is no setting"):
        read_settings({}, str(tmp_path / "service.toml"))


def test_the_guide_has_every_setting_with_its_default() -> None:
    assert settings_table() in (ROOT / "docs" / "service.md").read_text(encoding="utf-8")


def test_no_secret_shows_itself() -> None:
    settings = Settings(
        webhook_secret=Secret("hidden-1"), github_private_key=Secret("hidden-2"), github_token=Secret("hidden-3"),
        database=Secret("postgresql+psycopg://me:hidden-4@127.0.0.1/x"),
    )  # fmt: skip
    shown = f"{settings!r} {settings.webhook_secret} {settings.database:>30} {settings.github_token!r}"
    assert "hidden" not in shown
    assert "hidden" not in Database(settings.database_url).shown


def test_a_database_address_that_is_none_is_refused_without_telling_it() -> None:
    for address in ("hidden://me:hidden@host/x", "not an address", "mysql+pymysql://me:hidden@host/x"):
        with pytest.raises(UsageError) as error:
            Database(address)
        assert "hidden" not in str(error.value)


def test_log_records_lose_every_secret_whoever_wrote_them() -> None:
    key = "-----BEGIN KEY-----\nMIIEvsecretline\n-----END KEY-----"
    redacting = Redacting((Secret("a-webhook-secret"), Secret(key), Secret("")))
    record = logging.LogRecord("x", 20, "x", 1, "said %s and %s", ("a-webhook-secret", "MIIEvsecretline"), None)
    try:
        raise RuntimeError("cannot use a-webhook-secret")
    except RuntimeError:
        record.exc_info = sys.exc_info()
    assert redacting.filter(record)
    text = logging.Formatter().format(record)
    assert text.startswith("said … and …\n")
    assert text.endswith("RuntimeError: cannot use …")
