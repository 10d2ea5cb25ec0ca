"""Types of command-line arguments, whose errors are sentences."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError
from datetime import date

LARGEST = 2**63 - 1  # the databases' largest integer


def whole_number(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} isn't a whole number") from None
    if abs(value) > LARGEST:
        raise ArgumentTypeError(f"{text} is too large")
    return value


def count(text: str) -> int:
    """Return a whole number of 0 or more."""
    value = whole_number(text)
    if value < 0:
        raise ArgumentTypeError(f"{value} is negative: use 0 or more")
    return value


def positive_count(text: str) -> int:
    """Return a whole number of 1 or more."""
    value = whole_number(text)
    if value < 1:
        raise ArgumentTypeError(f"{value} is less than 1")
    return value


def number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ArgumentTypeError(f"{text!r} isn't a number")
    return value


def day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} isn't a date: use YYYY-MM-DD") from None


def port_number(text: str) -> int:
    value = whole_number(text)
    if not 0 <= value <= 65535:
        raise ArgumentTypeError(f"{value} isn't a port: use 1 to 65535, or 0 for a free port")
    return value


def explain_errors(parser: ArgumentParser) -> None:
    """Make Python's own types raise these errors, instead of naming a type or a function."""
    for python_type, own_type in ((int, whole_number), (float, number), (date.fromisoformat, day)):
        parser.register("type", python_type, own_type)
