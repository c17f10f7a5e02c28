"""The service's settings: each is declared once, with its default and what it is for.

Environment variables win over the file, the file over defaults. ``docs/service.md`` shows the table that
``settings_table`` makes of the declarations.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from validator.errors import UsageError

PREFIX = "VALIDATOR_"

#: Names the settings file.
FILE_VARIABLE = f"{PREFIX}SETTINGS"

#: ``VALIDATOR_WEBHOOK_SECRET_FILE`` names a file that holds the secret, as container engines hand them over.
FILE_SUFFIX = "_FILE"

ENGINES = ("local", "actions", "slurm")

#: OWNER/NAME.
REPOSITORY_FORM = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")


class Secret(str):
    """A string that never shows itself: not in logs, not in tracebacks, not in pages."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Secret(…)" if self else "Secret('')"

    def reveal(self) -> str:
        """The secret itself, for the one call that needs it."""
        return str.__str__(self)

    def __str__(self) -> str:
        return "…" if len(self) else ""

    def __format__(self, _: str) -> str:
        return str(self)


def _text(value: str) -> str:
    return value.strip()


def _names(value: str) -> tuple[str, ...]:
    return tuple(value.replace(",", " ").split())


def _number(value: str) -> int:
    return int(value)


def _seconds(value: str) -> float:
    return float(value)


def _secret(value: str) -> Secret:
    return Secret(value.strip())


_NO_SECRET = Secret("")


def _setting(default: Any, read: Callable[[str], Any], about: str) -> Any:
    return field(default=default, metadata={"read": read, "about": about})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set. Paths are relative to the working directory of the service."""

    host: str = _setting("127.0.0.1", _text, "Address to listen on.")
    port: int = _setting(8080, _number, "Port to listen on; 0 takes a free one.")
    url: str = _setting(
        "",
        _text,
        "Address under which people and runners reach the service; links in check runs begin with it. Empty: "
        "`http://HOST:PORT`.",
    )
    data: str = _setting("service-data", _text, "Folder of the results, the jobs' work and the embedded database.")
    database: Secret = _setting(  # noqa: RUF009 - a field
        _NO_SECRET,
        _secret,
        "Database as an SQLAlchemy address, `postgresql+psycopg://USER:PASSWORD@HOST/NAME`. Empty: SQLite in "
        "the data folder.",
    )
    project: str = _setting(
        ".", _text, "Folder of the base revision: its `pipelines/` and `golden/` are what results are judged by."
    )
    repositories: tuple[str, ...] = _setting(
        (),
        _names,
        "`OWNER/NAME` of the repositories whose events count; events of others are ignored. Empty: every "
        "repository that the App is installed on.",
    )
    pipelines: tuple[str, ...] = _setting((), _names, "Pipelines that an event calls for. Empty: all of the project.")
    webhook_secret: Secret = _setting(  # noqa: RUF009 - a field
        _NO_SECRET, _secret, "Secret that GitHub signs webhooks with. Without it no webhook is accepted."
    )
    webhook_bytes: int = _setting(25 * 1024**2, _number, "Largest webhook body, in bytes; GitHub sends at most 25 MiB.")
    github_url: str = _setting(
        "https://api.github.com", _text, "GitHub's API; for GitHub Enterprise Server `https://HOST/api/v3`."
    )
    github_app: str = _setting(
        "", _text, "ID of the GitHub App. Without it (and without a token) nothing is published."
    )
    github_private_key: Secret = _setting(_NO_SECRET, _secret, "Private key of the GitHub App, PEM.")  # noqa: RUF009 - a field
    github_token: Secret = _setting(  # noqa: RUF009 - a field
        _NO_SECRET, _secret, "Weaker than an App: a token for one's own use. It cannot read the App's delivery list."
    )
    engine: str = _setting(
        "local", _text, "Who carries jobs out: `local` (one worker process here), `actions` or `slurm`."
    )
    workflow: str = _setting(
        "", _text, "Workflow that the `actions` engine dispatches; it takes `key`, `pipeline`, `commit` and `image`."
    )
    rebaseline_workflow: str = _setting("rebaseline.yml", _text, "Workflow that the re-baseline button starts.")
    workflow_ref: str = _setting(
        "", _text, "Branch whose workflows are dispatched. Empty: the repository's default branch."
    )
    worker_prepare: str = _setting(
        "",
        _text,
        "`local` and `slurm`: command that turns `VALIDATOR_REPOSITORY`, `VALIDATOR_COMMIT` and "
        "`VALIDATOR_IMAGE` into what is to be checked; the lines `python=PATH` and `megatron=PATH` that it "
        "prints choose the environment under test. Empty: this machine's own environment is checked, and the "
        "check run says so.",
    )
    worker_options: str = _setting("", _text, "`local` and `slurm`: further options of `validator check`.")
    slurm_options: str = _setting("", _text, "`slurm`: options of `sbatch`, as `--partition=gpu --gres=gpu:8`.")
    attempts: int = _setting(
        3, _number, "How often a job is handed over when the machinery fails. A mismatch is never retried."
    )
    retry_seconds: float = _setting(30.0, _seconds, "Pause before a retry; doubled each time.")
    job_seconds: float = _setting(
        6 * 3600.0, _seconds, "Longest that one attempt may take, waiting in the engine's queue included."
    )
    poll_seconds: float = _setting(2.0, _seconds, "Pause between two looks at the engine.")
    delivery_seconds: float = _setting(
        300.0, _seconds, "Pause between two looks at the App's delivery list; also looked at when the service starts."
    )
    result_bytes: int = _setting(
        256 * 1024**2, _number, "Largest result that a runner may push, packed, in bytes; unpacked, four times as much."
    )
    log_level: str = _setting("info", _text, "`debug`, `info`, `warning` or `error`.")

    @property
    def public_url(self) -> str:
        return (self.url or f"http://{self.host}:{self.port}").rstrip("/")

    @property
    def folder(self) -> Path:
        return Path(self.data).resolve()

    @property
    def root(self) -> Path:
        return Path(self.project).resolve()

    @property
    def database_url(self) -> str:
        return self.database.reveal() or f"sqlite:///{self.folder / 'service.db'}"


def read_settings(variables: Mapping[str, str] | None = None, file: str | None = None) -> Settings:
    """The settings in force. ``file`` is TOML; a name that is no setting is refused. Raises ``UsageError``."""
    variables = os.environ if variables is None else variables
    file = file or variables.get(FILE_VARIABLE) or None
    given: dict[str, tuple[str, str]] = {}
    known = {item.name for item in fields(Settings)}
    if file is not None:
        for name, value in _read_file(Path(file)).items():
            if name not in known:
                raise UsageError(f"{file} sets {name!r}, which is no setting; docs/service.md lists them all.")
            given[name] = (" ".join(map(str, value)) if isinstance(value, list) else str(value), f"{name} in {file}")
    for item in fields(Settings):
        variable = PREFIX + item.name.upper()
        if (path := variables.get(variable + FILE_SUFFIX)) is not None:
            given[item.name] = (_read_secret(variable + FILE_SUFFIX, path), variable + FILE_SUFFIX)
        if variable in variables:
            given[item.name] = (variables[variable], variable)
    values = {}
    for item in fields(Settings):
        if item.name not in given:
            continue
        text, where = given[item.name]
        try:
            values[item.name] = item.metadata["read"](text)
        except ValueError as error:
            raise UsageError(f"{where} is {text!r}, which is no number.") from error
    return _checked(Settings(**values), {name: where for name, (_, where) in given.items()})


def settings_table() -> str:
    """All settings as a Markdown table, for docs/service.md."""
    lines = ["| variable, and name in the file | default | what for |", "| --- | --- | --- |"]
    for item in fields(Settings):
        default = item.default
        assert not isinstance(default, Secret) or not default
        shown = " ".join(default) if isinstance(default, tuple) else f"{default}"
        names = f"`{PREFIX}{item.name.upper()}`, `{item.name}`"
        lines.append(f"| {names} | {f'`{shown}`' if shown else 'empty'} | {item.metadata['about']} |")
    return "\n".join(lines) + "\n"


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"The settings file {file} cannot be read ({error.strerror}).") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"The settings file {file} is no TOML: {error}.") from error


def _read_secret(variable: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{variable} names {path}, which cannot be read ({error.strerror}).") from error


def _checked(settings: Settings, where: Mapping[str, str]) -> Settings:
    def named(name: str) -> str:
        return where.get(name, PREFIX + name.upper())

    if settings.engine not in ENGINES:
        raise UsageError(f"{named('engine')} is {settings.engine!r}; it is one of {', '.join(ENGINES)}.")
    for repository in settings.repositories:
        if not REPOSITORY_FORM.fullmatch(repository):
            raise UsageError(f"{named('repositories')} has {repository!r}; a repository is written OWNER/NAME.")
    if not 0 <= settings.port <= 65535:
        raise UsageError(f"{named('port')} is {settings.port}; a port is 0 to 65535.")
    for name in (
        "attempts",
        "retry_seconds",
        "job_seconds",
        "poll_seconds",
        "delivery_seconds",
        "webhook_bytes",
        "result_bytes",
    ):
        if getattr(settings, name) <= 0:
            raise UsageError(f"{named(name)} is {getattr(settings, name)}; it is larger than 0.")
    if settings.log_level not in ("debug", "info", "warning", "error"):
        raise UsageError(f"{named('log_level')} is {settings.log_level!r}; it is debug, info, warning or error.")
    if settings.engine == "actions" and not settings.workflow:
        raise UsageError(f"{named('engine')} is actions, but {PREFIX}WORKFLOW names no workflow to dispatch.")
    if settings.github_app and not settings.github_private_key:
        raise UsageError(f"{named('github_app')} is set, but {PREFIX}GITHUB_PRIVATE_KEY is not; an App has both.")
    return settings
