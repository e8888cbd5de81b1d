"""Fewer cases for slow machines: `--cases N` runs N parameter sets of each test, evenly spread."""

from itertools import groupby

import pytest


def pytest_addoption(parser: pytest.Parser):
    parser.addoption("--cases", type=int, metavar="N", help="parameter sets per test, at most")


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
