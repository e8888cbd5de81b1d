"""Modules that the benchmarks share with the tests, which are not an installed package."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

import cases
import directional
import random_pairs
import random_scenes

__all__ = ["cases", "directional", "random_pairs", "random_scenes"]
