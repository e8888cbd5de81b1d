"""Options that several commands have."""

from __future__ import annotations

import argparse
from pathlib import Path

from mujacobian._files import STDOUT, require_picture, require_writable


def add_outputs(parser: argparse.ArgumentParser, picture: str) -> None:
    """Add the options `--json` and `--plot`; `picture` says what is drawn."""
    parser.add_argument(
        "--json",
        type=Path,
        nargs="?",
        const=STDOUT,
        metavar="FILE",
        help="write all results to FILE as JSON; without FILE, or with -, print JSON and nothing "
        "else",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help=f"draw {picture} into a picture")


def settle_json(options: argparse.Namespace, subject: str) -> None:
    """Read `--json SUBJECT` as a flag and the subject, if the command has no other subject.

    argparse gives the argument after `--json` to the option, although FILE may be omitted.
    """
    if getattr(options, subject) is None and options.json not in (None, STDOUT):
        setattr(options, subject, options.json)
        options.json = STDOUT


def require_outputs(options: argparse.Namespace) -> None:
    """Raise an error now if the results could not be written after the computation."""
    if options.plot is not None:
        require_picture(options.plot)
    if options.json not in (None, STDOUT):
        require_writable(options.json)


def positive(text: str) -> int:
    """Return the integer in an argument, which must be at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def natural(text: str) -> int:
    """Return the integer in an argument, which must not be negative."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, got {value}")
    return value
