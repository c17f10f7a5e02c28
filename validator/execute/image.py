"""A candidate image: found, pulled or loaded, and looked at from outside before anything in it runs."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from validator.errors import LaunchError, UsageError
from validator.execute.archive import load_archive
from validator.execute.docker_engine import LABEL, Engine
from validator.execute.owner import Owner
from validator.report.text import printable

#: Largest file of an image that is read, in bytes: the list of a thousand packages takes a tenth of it.
_LARGEST = 32 << 20

#: Variables that only say where programs lie, and differ for no reason of computing.
_UNTOLD_VARIABLES = frozenset({"PATH", "HOME", "HOSTNAME", "TERM"})


@final
@dataclass(frozen=True, slots=True)
class Image:
    """One image of an engine. ``given`` is what was asked for, ``identity`` its ID (sha256:…).

    ``facts`` are what an environment says of it, by name; ``variables`` what it sets; ``volumes`` the folders for which
    the engine would make volumes without a limit. ``loaded_as`` is the tag of an
    archive that was loaded for this product and goes with it.
    """

    given: str
    identity: str
    facts: Mapping[str, str]
    variables: Mapping[str, str]
    volumes: tuple[str, ...] = ()
    loaded_as: str | None = None

    @property
    def name(self) -> str:
        """For people: what was asked for and which image that is."""
        short = self.identity.removeprefix("sha256:")[:12]
        return self.given if self.given.removeprefix("sha256:").startswith(short) else f"{self.given} ({short})"


def find_image(engine: Engine, given: str) -> Image:
    """The image that ``--image`` names: an archive (``docker save``), an ID, or a reference, pulled if need be.

    Raises ``UsageError`` where there is none.
    """
    if not Path(given).is_file():
        return _look_at(engine, given, _look_up(engine, given))
    identity, loaded_as = load_archive(engine, Path(given), Owner.current())
    try:
        return _look_at(engine, given, identity, loaded_as)
    except BaseException:
        engine.forget(loaded_as)
        raise


def _look_at(engine: Engine, given: str, identity: str, loaded_as: str | None = None) -> Image:
    with engine.speaking("looking at the image"):
        about = engine.client.images.get(identity).attrs
    if (about.get("Os"), about.get("Architecture")) != ("linux", _architecture(engine)):
        raise UsageError(
            f"The image {given} is for {about.get('Os')}/{about.get('Architecture')}, "
            f"and the engine runs linux/{_architecture(engine)}; change --image."
        )
    variables = _variables(about)
    volumes = tuple(sorted((about.get("Config") or {}).get("Volumes") or {}))
    return Image(given, about["Id"], _facts(engine, about, variables), variables, volumes, loaded_as)


def _look_up(engine: Engine, given: str) -> str:
    import docker  # noqa: PLC0415

    with engine.speaking("looking for the image"):
        try:
            return str(engine.client.images.get(given).id)
        except docker.errors.ImageNotFound:
            pass
        except (docker.errors.APIError, ValueError) as error:
            raise UsageError(f"{given!r} is no name of an image ({printable(str(error))[:200]}).") from None
    try:
        repository, _, tag = given.partition("@")
        pulled = engine.client.images.pull(repository, tag=tag or None)
        return str((pulled[0] if isinstance(pulled, list) else pulled).id)
    except (docker.errors.APIError, docker.errors.DockerException, IndexError, ValueError) as error:
        why = printable(" ".join(str(getattr(error, "explanation", "") or error).split()))[:200].rstrip(".")
        raise UsageError(
            f"{given!r} is neither an image of the Docker engine at {engine.address}, nor a file, "
            f"nor can it be pulled ({why}); change --image."
        ) from None


def _architecture(engine: Engine) -> str:
    with engine.speaking("asking for its version"):
        return str(engine.client.version().get("Arch"))


def _variables(about: Mapping[str, Any]) -> dict[str, str]:
    pairs = ((about.get("Config") or {}).get("Env")) or []
    return dict(pair.partition("=")[::2] for pair in pairs)


def _facts(engine: Engine, about: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, str]:
    config = about.get("Config") or {}
    facts = {"id": about["Id"]}
    digests = sorted(str(digest).partition("@")[2] for digest in about.get("RepoDigests") or [])
    if digests:
        facts["digest"] = ", ".join(dict.fromkeys(digests))
    for what in ("Entrypoint", "Cmd"):
        if config.get(what):
            facts[what.lower().replace("cmd", "command")] = json.dumps(config[what])
    facts |= {f"variable {name}": text for name, text in variables.items() if name not in _UNTOLD_VARIABLES}
    facts |= {f"label {name}": str(text) for name, text in (config.get("Labels") or {}).items() if name != LABEL}
    with _stopped(engine, about["Id"]) as container:
        release = _read(engine, container, "/usr/lib/os-release") or _read(engine, container, "/etc/os-release")
        facts["system"] = _system(release)
        facts |= {f"package {name}": version for name, version in _debian(_read(engine, container, _DPKG)).items()}
        facts |= {f"package {name}": version for name, version in _alpine(_read(engine, container, _APK)).items()}
    return {printable(name): printable(value) for name, value in facts.items()}


_DPKG = "/var/lib/dpkg/status"
_APK = "/lib/apk/db/installed"


@contextlib.contextmanager
def _stopped(engine: Engine, identity: str) -> Iterator[Any]:
    """A container of the image that never runs: its files can be read."""
    with engine.speaking("creating a container to read from"):
        container = engine.client.containers.create(
            identity, entrypoint=["/none"], command=[], network_mode="none", labels={LABEL: Owner.current().text}
        )
    try:
        yield container
    finally:
        with engine.speaking("removing the container that was read from"):
            engine.discard(container)


def _read(engine: Engine, container: Any, path: str) -> str:
    """A file of the image as text; empty where there is none, or it is no plain file of a sensible size."""
    with engine.speaking(f"reading {path} of the image"):
        api = engine.client.api
        about = api.head(api._url("/containers/{0}/archive", container.id), params={"path": path})  # noqa: SLF001
        try:
            told = json.loads(base64.b64decode(about.headers["X-Docker-Container-Path-Stat"]))
        except (KeyError, ValueError):
            return ""
        if told.get("linkTarget") or told.get("mode", 0) >> 31 or not 0 <= int(told.get("size", -1)) <= _LARGEST:
            return ""
        stream, _ = container.get_archive(path)
        content = b"".join(stream)  # read to its end: an unread one blocks what is asked next
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            member = archive.next()
            file = archive.extractfile(member) if member is not None and member.isfile() else None
            return "" if file is None else file.read().decode("utf-8", "replace")
    except tarfile.TarError as error:
        raise LaunchError(f"The Docker engine handed over no archive for {path} ({error}).") from error


def _system(release: str) -> str:
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', release, re.MULTILINE)
    return found[1] if found else "unknown"


def _debian(status: str) -> dict[str, str]:
    """Installed packages of dpkg's status file: version by name."""
    found = {}
    for paragraph in status.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Status): (.*)$", paragraph, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed") and {"Package", "Version"} <= fields.keys():
            found[fields["Package"]] = fields["Version"]
    return found


def _alpine(installed: str) -> dict[str, str]:
    """Installed packages of apk's data base: version by name."""
    found = {}
    for paragraph in installed.split("\n\n"):
        fields = dict(re.findall(r"^([PV]):(.*)$", paragraph, re.MULTILINE))
        if {"P", "V"} <= fields.keys():
            found[fields["P"]] = fields["V"]
    return found
