"""Judge a large collection of public models: see `python -m benchmarks.zoo --help`."""

from benchmarks.zoo.catalog import models
from benchmarks.zoo.sources import collect

__all__ = ["collect", "models"]
