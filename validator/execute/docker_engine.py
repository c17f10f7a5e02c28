"""The Docker engine: connecting to it, what its errors mean, and what a product that was killed left in it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self, final

from validator.errors import LaunchError, ValidatorError
from validator.execute.owner import Owner

#: Label of everything that the product makes in an engine; its value is the owner's text.
LABEL = "validator.owner"

#: Tags that loaded archives get, each one of its own, so that they are found again.
LOADED = "validator-loaded"

#: Seconds that the engine gets to answer one request.
ANSWER_WITHIN = 120


@final
@dataclass(frozen=True, slots=True)
class Engine:
    """A connection to one engine. ``client`` is the Docker SDK's, which has no types."""

    client: Any
    address: str

    @classmethod
    def connect(cls) -> Self:
        """Connect as the ``docker`` command does (``DOCKER_HOST``, …), and remove what dead products left behind.

        Raises ``LaunchError`` where there is no engine or no SDK.
        """
        try:
            import docker  # noqa: PLC0415 - an optional dependency
        except ImportError:
            raise LaunchError(
                "The Docker SDK is not installed beside the validator; pip install 'megatron-change-validator[docker]'."
            ) from None
        try:
            client = docker.from_env(timeout=ANSWER_WITHIN)
        except (docker.errors.DockerException, ValueError) as error:
            raise LaunchError(
                f"No Docker engine can be reached ({_clause(error)}); start one, or let DOCKER_HOST name it."
            ) from None
        engine = cls(client, os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock"))
        with engine.speaking("connecting"):
            client.ping()
        engine.sweep()
        return engine

    @property
    def is_here(self) -> bool:
        """Whether it runs on this machine."""
        return self.address.startswith("unix:")

    @contextlib.contextmanager
    def speaking(self, doing: str) -> Iterator[None]:
        """Turn whatever the engine or the way to it raises into a ``LaunchError`` that says what was being done."""
        import docker  # noqa: PLC0415
        import requests  # noqa: PLC0415
        import urllib3  # noqa: PLC0415

        try:
            yield
        except ValidatorError:
            raise
        except docker.errors.APIError as error:
            raise LaunchError(f"The Docker engine refused ({doing}): {_clause(error)}.") from error
        except (
            docker.errors.DockerException,
            requests.exceptions.RequestException,
            urllib3.exceptions.HTTPError,
            ConnectionError,
            TimeoutError,
        ) as error:
            raise LaunchError(
                f"The Docker engine at {self.address} went away or does not answer ({doing}): {_clause(error)}."
            ) from error

    def sweep(self) -> list[str]:
        """Remove containers and loaded archives whose product has ended; returns what was removed.

        One that another start removes at the same time, or that cannot be removed, is no error of this one.
        """
        removed: list[str] = []
        with self.speaking("looking for what was left behind"):
            containers = self.client.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True)
            for container in containers:
                owner = Owner.parse(container.labels.get(LABEL, ""))
                if owner is not None and owner.is_gone:
                    self.discard(container)
                    removed.append(container.name)
            for image in self.client.images.list(name=LOADED):
                for tag in (each for each in image.tags if each.startswith(f"{LOADED}:")):
                    owner = Owner.parse(untag(tag))
                    if owner is not None and owner.is_gone:
                        self.forget(tag)
                        removed.append(tag)
        return removed

    def discard(self, container: Any) -> None:
        """Kill and remove a container with its volumes; one that is gone already is fine."""
        import docker  # noqa: PLC0415

        with contextlib.suppress(docker.errors.NotFound), _not_twice():
            container.remove(force=True, v=True)

    def forget(self, tag: str) -> None:
        """Remove an image that nothing else names; one that is in use or gone stays as it is, as with a gone engine."""
        with contextlib.suppress(LaunchError), self.speaking("removing a loaded image"):
            self.client.images.remove(tag)


@contextlib.contextmanager
def _not_twice() -> Iterator[None]:
    """A removal that is under way already is as good as ours."""
    import docker  # noqa: PLC0415

    try:
        yield
    except docker.errors.APIError as error:
        if error.status_code != 409:
            raise


def tag_for(owner: Owner, number: int) -> str:
    """The owner's text and the archive's number in the characters that a tag may have, behind the loaded archives'
    repository.
    """
    return f"{LOADED}:{f'{owner.text}/{number}'.replace('_', '__').replace('/', '_-')}"


def untag(tag: str) -> str:
    """The owner's text of such a tag."""
    return tag.partition(":")[2].replace("_-", "/").replace("__", "_").rpartition("/")[0]


def _clause(error: Exception) -> str:
    """The engine's own explanation on one line, shortened."""
    text = str(getattr(error, "explanation", "") or error) or type(error).__name__
    return " ".join(text.split())[:300].rstrip(".")
