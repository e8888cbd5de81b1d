"""The test suite. Its packages `oracle`, `scenes` and `ties` also serve the benchmarks."""
