"""Example programs. Run them as `python -m examples.NAME` from the root of the repository."""
