"""What the commands of the service accept. Imports nothing: the parser is built at every start."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping


def _settings(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--settings", metavar="FILE", help="settings, TOML (default: VALIDATOR_SETTINGS, or none)")


def _serve(sub: argparse.ArgumentParser) -> None:
    _settings(sub)
    sub.add_argument("--ready", metavar="FILE", help="write the address here once it is listened on")


def _push(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("out", metavar="DIR", help="folder that a check was given with --out, or its zip")
    sub.add_argument("--url", required=True, help="address of the service; the token is in VALIDATOR_PUSH_TOKEN")
    sub.add_argument("--attempt", metavar="KEY", help="key of the attempt, as the service handed it over")
    sub.add_argument("--repository", metavar="OWNER/NAME", help="without a key: the repository of the commit")
    sub.add_argument("--commit", metavar="SHA", help="without a key: the commit that was checked")
    sub.add_argument(
        "--patience", metavar="SECONDS", type=float, default=600.0, help="how long to try while it is away (600)"
    )


def _token_create(sub: argparse.ArgumentParser) -> None:
    _settings(sub)
    sub.add_argument("--repository", metavar="OWNER/NAME", required=True, help="whose results may be pushed with it")
    sub.add_argument("--name", required=True, help="what it is for, in a few words")
    sub.add_argument("--days", type=int, default=90, help="how long it lasts (90)")


def _token_revoke(sub: argparse.ArgumentParser) -> None:
    _settings(sub)
    sub.add_argument("number", metavar="N", type=int, help="the token's number in validator token list")


OPTIONS: Mapping[str, Callable[[argparse.ArgumentParser], None]] = {
    "serve": _serve,
    "push": _push,
    "token create": _token_create,
    "token list": _settings,
    "token revoke": _token_revoke,
}
