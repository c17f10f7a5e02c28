"""The database: SQLite beside the results, or PostgreSQL by its address."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.orm.exc import StaleDataError

from validator.errors import UsageError, ValidatorError

#: How long a writer waits for another one, in seconds.
BUSY_SECONDS = 5.0

_WRITES = "validator_writes"


class StorageError(ValidatorError):
    """Nothing can be stored at the moment: the database is locked, away or full. What was asked for was not done."""


@final
class Database:
    """Sessions that read, and sessions that write. A write is whole or did not happen."""

    def __init__(self, url: str, busy_seconds: float = BUSY_SECONDS) -> None:
        """Raises ``UsageError`` where ``url`` is no database address; connects later."""
        try:
            parsed = make_url(url)
            is_sqlite = parsed.get_backend_name() == "sqlite"
            arguments: dict[str, Any] = (
                {"timeout": busy_seconds, "check_same_thread": False, "isolation_level": None}
                if is_sqlite
                else {"connect_timeout": 10, "options": f"-c lock_timeout={int(busy_seconds * 1000)}"}
            )
            self.engine: Engine = create_engine(parsed, connect_args=arguments, pool_pre_ping=not is_sqlite)
        except (ArgumentError, ModuleNotFoundError) as error:
            raise UsageError(
                "VALIDATOR_DATABASE is no database address that can be used; write sqlite:///FILE or "
                "postgresql+psycopg://USER:PASSWORD@HOST/NAME."
            ) from error
        self.shown = parsed.render_as_string(hide_password=True)
        if is_sqlite:
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
        self._reading = sessionmaker(self.engine, expire_on_commit=False)
        self._writing = sessionmaker(self.engine.execution_options(**{_WRITES: True}), expire_on_commit=False)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session that sees one state. Raises ``StorageError``."""
        with self._named(), self._reading() as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session that is committed at the end, or rolled back. Raises ``StorageError``."""
        with self._named(), self._writing.begin() as session:
            yield session

    def upgrade(self) -> None:
        """Bring the tables to this version of the service. Raises ``StorageError``, ``UsageError``."""
        if self.engine.url.get_backend_name() == "sqlite" and self.engine.url.database:
            _make_folder(Path(self.engine.url.database).parent)
        with self._named():
            try:
                with self.engine.execution_options(**{_WRITES: True}).begin() as connection:
                    config = _alembic()
                    config.attributes["connection"] = connection
                    command.upgrade(config, "head")
            except CommandError as error:
                raise UsageError(
                    f"The database {self.shown} is of another version of the service ({error})."
                ) from error

    def is_current(self) -> bool:
        """Whether the tables are of this version. Raises ``StorageError``."""
        with self._named(), self.engine.connect() as connection:
            found = MigrationContext.configure(connection).get_current_revision()
        return found == ScriptDirectory.from_config(_alembic()).get_current_head()

    def dispose(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except StaleDataError:
            raise
        except (OperationalError, DBAPIError) as error:
            text = (
                str(error.orig).splitlines()[0] if error.orig is not None and str(error.orig) else type(error).__name__
            )
            if isinstance(error, OperationalError) or error.connection_invalidated:
                raise StorageError(f"The database {self.shown} cannot be used: {text}.") from error
            raise
        except SQLAlchemyError as error:
            if isinstance(error, TimeoutError):
                raise StorageError(f"The database {self.shown} is too busy.") from error
            raise


def retrying[T](step: Callable[[], T], tries: int = 5) -> T:
    """Run a write again where another writer was faster; it reads anew each time."""
    for left in range(tries - 1, -1, -1):
        try:
            return step()
        except StaleDataError:
            if not left:
                raise
            time.sleep(0.01 * (tries - left))
    raise AssertionError


def _alembic() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"{folder} cannot be made ({error.strerror}); set VALIDATOR_DATA to another folder."
        ) from error


def _prepare_sqlite(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")  # what was acknowledged survives a power cut
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _begin_sqlite(connection: Any) -> None:
    # A writer takes its lock at once: one that read first and writes later could not wait for another.
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
