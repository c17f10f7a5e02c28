"""Sets a team's own repository up. Nothing that is there is ever overwritten."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from validator.errors import LaunchError, UsageError

#: Where each template goes.
_TARGETS = {
    "check.yml": ".github/workflows/check.yml",
    "publish.yml": ".github/workflows/publish.yml",
    "rebaseline.yml": ".github/workflows/rebaseline.yml",
    "nightly.yml": ".github/workflows/nightly.yml",
    "CODEOWNERS": ".github/CODEOWNERS",
    "ruleset.json": ".github/ruleset.json",
    "first.yaml": "pipelines/first.yaml",
}

_PRODUCT = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_OWNER = re.compile(r"@[A-Za-z0-9-]+(/[A-Za-z0-9._-]+)?")


def set_up(folder: Path, product: str, commit: str, owners: str) -> list[str]:
    """Write the files that are not there yet; returns a line for each, and what is left for a person to do.

    ``product`` is ``OWNER/NAME`` of the validator's repository and ``commit`` 40 hexadecimal digits, since a tag can be
    moved; ``owners`` are users or teams, separated by spaces. Raises ``UsageError`` for anything else.
    """
    if not _PRODUCT.fullmatch(product):
        raise UsageError(f"--product is {product!r}; accepted is OWNER/NAME of the validator's repository.")
    if not _COMMIT.fullmatch(commit):
        raise UsageError(
            f"--commit is {commit!r}; accepted is a commit in full, 40 hexadecimal digits: a tag can move."
        )
    if not owners.split() or not all(_OWNER.fullmatch(each) for each in owners.split()):
        raise UsageError(f"--owners is {owners!r}; accepted are @user or @organisation/team, separated by spaces.")
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; --folder takes the repository to set up.")
    lines = []
    for name, place in _TARGETS.items():
        target = folder / place
        if target.exists() or target.is_symlink():
            lines.append(f"kept     {place}")
            continue
        if name == "first.yaml" and any((folder / "pipelines").glob("*.yaml")):
            continue
        text = files("validator.github").joinpath("templates", name).read_text(encoding="utf-8")
        for word, value in (("@PRODUCT@", product), ("@COMMIT@", commit), ("@OWNERS@", owners)):
            text = text.replace(word, value)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            raise LaunchError(f"{target} cannot be written ({error.strerror}).") from error
        lines.append(f"written  {place}")
    return [*lines, *_LEFT]


_LEFT = (
    "Left for you, as docs/github.md of the validator describes:",
    "- constraints.txt with the versions to launch with",
    "- environments launch-unreviewed (with required reviewers), launch-reviewed, publish (default branch only)",
    "- a GitHub App: its number as variable VALIDATOR_APP_ID, its key as VALIDATOR_APP_KEY in environment publish",
    "- ephemeral runners in a group that is restricted to these workflows",
    "- import .github/ruleset.json as a ruleset, and name the App in its required check",
    "Then: validator doctor --github --repository OWNER/NAME",
)
