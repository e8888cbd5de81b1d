"""Accuracy and speed on an arm and a quadruped in the air: `make demo`."""
