"""Judge derivatives with respect to parameters: see `python -m benchmarks.parameters --help`."""

from benchmarks.parameters.judge import EXACT, NOT_JUDGED, REFUSED, WRONG, judge_family

__all__ = ["EXACT", "NOT_JUDGED", "REFUSED", "WRONG", "judge_family"]
