"""Policies learned from gradients and without them: see `python -m benchmarks.policies --help`."""
