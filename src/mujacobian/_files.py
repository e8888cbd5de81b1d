"""Files that commands read and write. Every problem is an error of one line with the path."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mujacobian.errors import MujacobianError

STDOUT = Path("-")


class FileError(MujacobianError):
    """A file cannot be read or written; the message begins with its path."""


def require_file(path: Path) -> None:
    """Raise if there is no file with content at this path."""
    if not path.exists():
        raise FileError(f"{path}: no such file")
    if not path.is_file():
        raise FileError(f"{path}: not a file")
    if path.stat().st_size == 0:
        raise FileError(f"{path}: the file is empty")


def require_writable(path: Path) -> None:
    """Raise if a file cannot be made at this path, before a long computation."""
    if path.is_dir() or not path.parent.is_dir():
        raise FileError(f"{path}: cannot be written, not a file in an existing folder")


def require_picture(path: Path) -> None:
    """Raise if a picture cannot be made at this path, before a long computation."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MujacobianError("--plot needs matplotlib: pip install 'mujacobian[plot]'")
    from matplotlib.backend_bases import FigureCanvasBase

    require_writable(path)
    known = FigureCanvasBase.get_supported_filetypes()
    suffix = path.suffix.removeprefix(".").lower()
    if suffix and suffix not in known:
        raise FileError(f"{path}: no format of pictures, use one of {', '.join(sorted(known))}")


def write(path: Path, make: Callable[[Path], object]) -> None:
    """Call a function that writes a file."""
    try:
        make(path)
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: {in_one_line(error)}") from None


def write_json(path: Path, report: Mapping[str, Any], indent: int | None = None) -> None:
    """Write a report to a file, or print it if the path is `-`."""
    text = json.dumps(report, indent=indent, allow_nan=False)
    if path == STDOUT:
        print(text)
    else:
        write(path, lambda path: path.write_text(text + "\n", encoding="utf-8"))


def in_one_line(error: Exception) -> str:
    """Return the message of an error without its line breaks."""
    return "; ".join(filter(None, (line.strip() for line in str(error).splitlines())))
