"""Programs that show mujacobian at work; each runs as `python -m examples.NAME` from here."""
