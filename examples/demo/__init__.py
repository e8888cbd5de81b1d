"""The demo: accuracy and speed on an arm and a quadruped, then a trot. Run `make demo`."""
