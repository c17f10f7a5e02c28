"""What the command line accepts. Builds the parser only; ``cli`` runs what it finds."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

from validator.github.options import OPTIONS as GITHUB_OPTIONS
from validator.github.options import add_doctor, add_propose
from validator.service.options import OPTIONS as SERVICE_OPTIONS

_EXIT_CODES = """exit codes of check:
  0  pass, rebaselined
  1  nondeterministic, changed, resume_broken, over_budget
  2  the request cannot be carried out as written: usage or configuration
  3  error, host_changed: it could not be found out, which is never a pass
  4  no_baseline, inconclusive
"""

Command = Callable[[argparse.Namespace], int]


def parser(version: str, commands: Mapping[str, Command]) -> argparse.ArgumentParser:
    """The whole command line; ``commands`` maps ``golden record`` and the like to what runs."""
    top = _parser(
        "validator", "Is it still the same computation, is it deterministic, does resume still work?", _EXIT_CODES
    )
    top.add_argument("--version", action="version", version=f"validator {version}")
    subcommands = top.add_subparsers(required=True, metavar="COMMAND")
    groups = {
        "golden": "approved trajectories: record, propose, show, list, verify, log",
        "pipeline": "what a check trains: list, validate, show",
        "token": "leave to push results to the service: create, list, revoke",
        "github": "check runs, comments and re-baselines: pack, publish, rebaseline",
    }
    nested = {}
    for name, command in commands.items():
        group, _, own = name.rpartition(" ")
        if group and group not in nested:
            parent = subcommands.add_parser(group, help=groups[group], description=groups[group])
            nested[group] = parent.add_subparsers(required=True, metavar="COMMAND")
        description = (command.__doc__ or "").splitlines()[0]
        sub = (nested[group] if group else subcommands).add_parser(
            own, help=description, description=description, formatter_class=argparse.RawDescriptionHelpFormatter,
            epilog=_EXIT_CODES if name == "check" else None, allow_abbrev=False,
        )  # fmt: skip
        sub.set_defaults(command=command)
        _OPTIONS[name](sub)
    return top


def _parser(name: str, description: str, epilog: str) -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(
        prog=name, description=description, epilog=epilog, formatter_class=form, allow_abbrev=False
    )


def _pipeline(sub: argparse.ArgumentParser, optional: bool = False) -> None:
    sub.add_argument(
        "pipeline", metavar="PIPELINE", nargs="?" if optional else None, help="a name in pipelines/, or a YAML file"
    )


def _golden_store(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--golden", metavar="DIR", help="golden store (default: golden/ beside pipelines/)")


def _launching(sub: argparse.ArgumentParser) -> None:
    """Options of every command that launches."""
    _pipeline(sub)
    _golden_store(sub)
    sub.add_argument(
        "--out", metavar="DIR", help="new or empty folder for logs and trajectories (default: one under runs/)"
    )
    sub.add_argument(
        "--env",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="change a variable of the environment under test",
    )
    sub.add_argument(
        "--python", metavar="PATH", help="launch with this interpreter, or that of this environment's folder"
    )
    sub.add_argument("--megatron", metavar="PATH", help="put this Megatron-LM checkout in front")
    sub.add_argument(
        "--plugin",
        metavar="FILE",
        help="apply this Python file inside every launch: faults and instruments of your own",
    )
    _image(sub)
    _slurm(sub)
    sub.add_argument("--switch", metavar="NAME=VALUE", action="append", default=[], help=argparse.SUPPRESS)


def _slurm(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--slurm", action="store_true", help="launch through Slurm; the run's folder must be shared")
    sub.add_argument(
        "--slurm-option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an option of the jobs, as partition=gpu; tasks_per_node and queue_seconds are ours",
    )


def _image(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--image", metavar="IMAGE", help="launch in this container image: reference, ID, or archive")
    sub.add_argument(
        "--bind",
        metavar="DIR",
        action="append",
        default=[],
        help="a folder of this machine that the image gets read-only under its own name",
    )


def _publishing(sub: argparse.ArgumentParser) -> None:
    """Where metrics go. A pull request's run is never pushed."""
    sub.add_argument("--push", metavar="URL", help="push metrics to this Pushgateway")
    sub.add_argument("--textfile", metavar="FILE", help="write metrics for node_exporter's textfile collector")


def _overhead(sub: argparse.ArgumentParser) -> None:
    _launching(sub)
    sub.add_argument("--quick", action="store_true", help="a first look: two pairs, no breakdown, no decision")
    sub.add_argument("--noise", action="store_true", help="both arms the same: the machine's noise floor")
    sub.add_argument(
        "--without-fill",
        action="store_true",
        help="a third arm: deterministic, but new memory is not filled",
    )
    sub.add_argument("--no-breakdown", action="store_true", help="no profiled launches")
    sub.add_argument("--json", metavar="FILE", help="write the record as JSON")
    sub.add_argument("--html", metavar="FILE", help="write a page with pairs, steps and breakdown")
    _publishing(sub)


def _selftest(sub: argparse.ArgumentParser) -> None:
    _launching(sub)
    sub.add_argument(
        "--fault", metavar="NAME", action="append", default=[], help="only this fault (again and again for several)"
    )
    sub.add_argument("--quick", action="store_true", help="a small set that covers each gate: minutes")
    sub.add_argument(
        "--localise",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="look for the module as well (default: yes)",
    )
    sub.add_argument("--json", metavar="FILE", help="write the record as JSON")
    sub.add_argument("--markdown", metavar="FILE", help="write the matrix as Markdown")
    _publishing(sub)


def _bisect(sub: argparse.ArgumentParser) -> None:
    _pipeline(sub)
    sub.add_argument("before", metavar="BEFORE", help="the set to compare with: a lock file, or an environment")
    sub.add_argument("after", metavar="AFTER", help="the set that computes other bits: the same")
    _golden_store(sub)
    sub.add_argument("--out", metavar="DIR", help="new or empty folder for environments, logs and trajectories")
    sub.add_argument(
        "--python", metavar="PATH", help="install locks for this interpreter (default: the validator's own)"
    )
    sub.add_argument(
        "--base",
        dest="base_environment",
        metavar="ENV",
        help="packages that neither set names come from this environment",
    )
    sub.add_argument(
        "--find-links", metavar="DIR", action="append", default=[], help="a folder of wheels to install from as well"
    )
    sub.add_argument("--offline", action="store_true", help="install from --find-links and caches only")
    sub.add_argument(
        "--env", metavar="NAME=VALUE", action="append", default=[], help="change a variable of all launches"
    )
    sub.add_argument("--megatron", metavar="PATH", help="put this Megatron-LM checkout in front")
    sub.add_argument("--plugin", metavar="FILE", help="apply this Python file inside every launch")
    _slurm(sub)
    sub.add_argument("--image", help=argparse.SUPPRESS)  # refused with the reason
    sub.add_argument("--no-localise", action="store_true", help="do not launch again to find the module")
    sub.add_argument("--json", metavar="FILE", help="write the answer as JSON")


def _metrics(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("records", metavar="FILE", nargs="+", help="JSON reports of checks, and overhead records")
    _publishing(sub)


def _check(sub: argparse.ArgumentParser) -> None:
    _launching(sub)
    sub.add_argument(
        "--base-image", metavar="IMAGE", help="the golden's image: launched here on a mismatch, to see who did it"
    )
    sub.add_argument(
        "--base-python", metavar="PATH", help="the interpreter of the golden's environment: the same, without images"
    )
    sub.add_argument(
        "--overhead",
        dest="requirement",
        choices=("required", "advisory", "off"),
        help="the overhead gate in this check (default: as the pipeline's policy says)",
    )
    _publishing(sub)
    sub.add_argument("--keep-going", action="store_true", help="run the later gates although an earlier one fails")
    sub.add_argument(
        "--localise",
        action=argparse.BooleanOptionalAction,
        help="find the module in which bits part, with launches of its own (default: for a person at a terminal)",
    )
    sub.add_argument(
        "--launches", metavar="N", type=int, default=1, help="at least N independent launches: rare faults need more"
    )
    sub.add_argument(
        "--parallel", metavar="N", type=int, default=1, help="up to N launches at a time, never timed ones"
    )
    sub.add_argument(
        "--base",
        metavar="REV",
        help="take policy, waivers and golden from this commit; the computation stays the work tree's",
    )
    sub.add_argument("--json", metavar="FILE", help="write the report as JSON")
    sub.add_argument("--markdown", metavar="FILE", help="write the report as Markdown")
    sub.add_argument("--junit", metavar="FILE", help="write the report as JUnit XML")


def _record(sub: argparse.ArgumentParser) -> None:
    _launching(sub)
    for action in sub._actions:  # noqa: SLF001 - argparse has no other way to make an inherited option required
        if "--out" in action.option_strings:
            action.required, action.help = True, "where the trajectory goes: a folder that is not there yet"


def _golden_record(sub: argparse.ArgumentParser) -> None:
    _launching(sub)
    sub.add_argument("--reason", required=True, help="why these bits are right, in one line")
    sub.add_argument("--approver", required=True, help="who vouches for them")
    sub.add_argument("--requester", help="who asked for them (default: the approver)")
    sub.add_argument("--change", help="what causes them: a commit, or a pull request's address")
    sub.add_argument(
        "--accept-drift",
        action="store_true",
        help="acknowledge that the loss or the gradient norm moved by more than 5 %%",
    )


def _golden_propose(sub: argparse.ArgumentParser) -> None:
    _launching(sub)
    for action in sub._actions:  # noqa: SLF001 - argparse has no other way to take several
        if action.dest == "pipeline":
            action.nargs = "+"
    add_propose(sub)


def _compare(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("expected", metavar="A", help="folder of a trajectory, a golden or a launch")
    sub.add_argument("observed", metavar="B", help="the same, to be compared with A")
    sub.add_argument("--html", metavar="FILE", help="write a page that shows the two side by side")


def _report(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("result", metavar="RESULT", help="the --out folder of a check, or a JSON report")
    sub.add_argument("--html", metavar="FILE", help="write the report page: one file, to be opened in a browser")
    sub.add_argument("--markdown", metavar="FILE", help="write the report as Markdown")
    sub.add_argument("--junit", metavar="FILE", help="write the report as JUnit XML")


def _golden_one(sub: argparse.ArgumentParser) -> None:
    _pipeline(sub)
    _golden_store(sub)


def _doctor(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--python", metavar="PATH", help="look at this interpreter instead of the validator's own")
    sub.add_argument("--megatron", metavar="PATH", help="a Megatron-LM checkout that launches are to use")
    add_doctor(sub)
    _image(sub)


def _nothing(_: argparse.ArgumentParser) -> None:
    """No options."""


_OPTIONS: Mapping[str, Callable[[argparse.ArgumentParser], None]] = {
    "check": _check,
    "selftest": _selftest,
    "faults": _nothing,
    "bisect": _bisect,
    "overhead": _overhead,
    "metrics": _metrics,
    "record": _record,
    "compare": _compare,
    "report": _report,
    "doctor": _doctor,
    "golden record": _golden_record,
    "golden propose": _golden_propose,
    "golden show": _golden_one,
    "golden list": _golden_store,
    "golden verify": _golden_store,
    "golden log": _golden_one,
    "pipeline list": _nothing,
    "pipeline validate": lambda sub: _pipeline(sub, optional=True),
    "pipeline show": _pipeline,
    **GITHUB_OPTIONS,
    **SERVICE_OPTIONS,
}
