"""Checks of what callers give, and how it is shown in the messages of errors."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeGuard


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether it is an integer, of Python's or of NumPy's types; true and false are none."""
    return type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))


def shown(value: object, most: int = 40) -> str:
    """A value as one short line of text, whatever it is.

    Args:
        value: what somebody gave; its own repr may fail.
        most: characters.
    """
    try:
        text = repr(value).replace("\n", " ")
    except Exception:  # a number of over 4,300 digits, lists too deep, somebody's own class
        return f"a {type(value).__name__} that cannot be printed"
    return text if len(text) <= most else text[: most - 3] + "..."
