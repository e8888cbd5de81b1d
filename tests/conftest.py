"""Fewer cases for slow machines, and a count of the code blocks of pages.

`--cases N` runs N parameter sets of each test, evenly spread.
"""

from itertools import groupby

import pytest


def pytest_addoption(parser: pytest.Parser):
    parser.addoption("--cases", type=int, metavar="N", help="parameter sets per test, at most")


@pytest.fixture
def double_precision():
    """Let JAX compute in double precision, as `mujacobian.jax` needs, and restore its setting."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    before = jax.config.jax_enable_x64
    # for all threads: compiled functions call ours in threads of their own
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.hookimpl(trylast=True)  # after -m and -k have selected the tests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]):
    most = config.getoption("--cases")
    if most is None:
        return
    kept = []
    for _, group in groupby(items, key=lambda item: item.nodeid.partition("[")[0]):
        cases = list(group)
        count = min(most, len(cases))
        kept += [cases[i * len(cases) // count] for i in range(count)]
    chosen = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = kept


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter):
    """Print how many code blocks of pages ran, and which packages others need."""
    reports = [report for report in terminalreporter.getreports("passed") if report.when == "call"]
    properties = [each for report in reports for each in report.user_properties]
    ran = [value for name, value in properties if name == "block"]
    if ran:
        pages = {value.rpartition(":")[0] for value in ran}
        terminalreporter.write_line(f"{len(ran)} code blocks of {len(pages)} pages ran")
    for name, value in properties:
        if name == "skipped":
            terminalreporter.write_line(f"not run: blocks of {value}")
