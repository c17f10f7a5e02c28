"""The commands of the service; ``cli`` runs them."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from validator.errors import UsageError, ValidatorError

if TYPE_CHECKING:
    from validator.service.tokens import Tokens

#: Where ``validator push`` finds its token: never on a command line, which every user of the machine can read.
TOKEN_VARIABLE = "VALIDATOR_PUSH_TOKEN"  # noqa: S105 - a variable's name


def serve(options: argparse.Namespace) -> int:
    """Run the service: webhooks in, jobs handed over, results judged and shown."""
    from validator.service.serve import serve as run
    from validator.service.settings import read_settings

    run(read_settings(file=options.settings), Path(options.ready) if options.ready else None)
    return 0


def push(options: argparse.Namespace) -> int:
    """Hand a check's result over to the service, which judges it anew; repeating it changes nothing."""
    import tempfile

    token = os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        raise UsageError(f"{TOKEN_VARIABLE} is not set; validator token create makes a token.")
    with tempfile.TemporaryDirectory() as scratch:
        return _push(options, token, _opened(Path(options.out), Path(scratch)))


def _opened(out: Path, scratch: Path) -> Path:
    """The folder, or the zip that a workflow kept of it, unpacked as untrusted. Raises ``ValidatorError``."""
    if not (out.is_file() and out.suffix == ".zip"):
        return out
    from validator.github.results import unpack

    unpack(out, scratch / "result")
    return scratch / "result"


def _push(options: argparse.Namespace, token: str, out: Path) -> int:
    from validator.service.results.push import Pusher

    if options.attempt:
        pusher = Pusher.of_attempt(options.url, token, options.attempt)
    elif options.repository and options.commit:
        pusher = Pusher.of_commit(options.url, token, options.repository, options.commit, out)
    else:
        raise UsageError("Say whose result it is: --attempt KEY, or --repository OWNER/NAME and --commit SHA.")
    answer = pusher.push_until_answered(out, options.patience)
    print(answer.sentence)
    if answer.is_taken:
        return 0
    if answer.is_refused:
        raise UsageError(f"The service refused the result with {answer.status}.")
    raise ValidatorError("The result was not pushed; it is kept and can be pushed again.")


def token_create(options: argparse.Namespace) -> int:
    """Make a token that lets one repository's runners push; it is printed once."""
    from validator.service.settings import REPOSITORY_FORM

    if not REPOSITORY_FORM.fullmatch(options.repository):
        raise UsageError(f"--repository is {options.repository!r}; a repository is written OWNER/NAME.")
    if not 0 < options.days <= 3650:
        raise UsageError(f"--days is {options.days}; a token lasts 1 to 3650 days.")
    print(_tokens(options).create(options.name, options.repository, options.days * 86400.0))
    return 0


def token_list(options: argparse.Namespace) -> int:
    """List the tokens that people made."""
    now = datetime.now(UTC).timestamp()
    for token in _tokens(options).list():
        state = "revoked" if token.revoked is not None else "expired" if token.expires <= now else "valid"
        expires = datetime.fromtimestamp(token.expires, UTC).date()
        print(f"{token.id}  {state}  {token.repository}  until {expires}  {token.name}")
    return 0


def token_revoke(options: argparse.Namespace) -> int:
    """Make a token worthless."""
    _tokens(options).revoke(options.number)
    print(f"Token {options.number} allows nothing any more.")
    return 0


def _tokens(options: argparse.Namespace) -> Tokens:
    from validator.service.database import Database
    from validator.service.settings import read_settings
    from validator.service.tokens import Tokens

    database = Database(read_settings(file=options.settings).database_url)
    database.upgrade()
    return Tokens(database)


#: What each command name runs.
COMMANDS = {
    "serve": serve, "push": push, "token create": token_create, "token list": token_list,
    "token revoke": token_revoke,
}  # fmt: skip
