"""Files that are written whole or not at all. It needs no torch."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class CheckpointError(ValueError):
    """A run that cannot be resumed; the message names the file."""


def write_atomically(path: Path, write: Any) -> None:
    """Write a file so that its old content stays until the new one is whole.

    Args:
        path: the file.
        write: called with an open binary file.
    """
    partial = path.with_suffix(path.suffix + ".partial")
    try:
        with open(partial, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise CheckpointError(
            f"{path}: could not be written ({error.strerror}); the earlier file stands"
        ) from None


def write_json(path: Path, data: Any) -> None:
    """Write JSON atomically."""
    text = json.dumps(data, indent=2) + "\n"
    write_atomically(path, lambda file: file.write(text.encode()))
