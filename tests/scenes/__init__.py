"""Models and states that several tests and benchmarks use."""
