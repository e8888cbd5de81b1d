"""Accuracy and speed on an arm and a quadruped in the air, then a trot: `make demo`."""
