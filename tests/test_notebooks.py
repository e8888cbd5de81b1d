"""The notebooks are complete, executed in order, and small; `make notebooks` executes them."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
COLAB = "https://colab.research.google.com/github/mujacobian/mujacobian/blob/main/notebooks/"
LARGEST = 200_000  # bytes; pages show the notebooks with their pictures


def read(path):
    """Return the cells of a notebook, as pairs of the cell and its source."""
    cells = json.loads(path.read_text())["cells"]
    return [(cell, "".join(cell["source"])) for cell in cells]


def code(path):
    return [(cell, source) for cell, source in read(path) if cell["cell_type"] == "code"]


def test_there_are_four_notebooks():
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestNotebook:
    def test_begins_with_a_title_and_a_badge_of_its_own(self, path):
        first = read(path)[0][1]
        assert re.match(r"# \w", first)
        assert f"({COLAB}{path.name})" in first

    def test_installs_only_what_is_missing(self, path):
        first = code(path)[0][1]
        assert 'if importlib.util.find_spec("mujacobian") is None:\n    %pip install' in first
        assert "%pip" not in "".join(source for _, source in code(path)[1:])

    def test_was_executed_in_order_without_errors(self, path):
        counts = [cell["execution_count"] for cell, _ in code(path)]
        assert counts == list(range(1, len(counts) + 1))
        for cell, _ in code(path):
            streams = {output.get("name") for output in cell["outputs"]}
            assert "stderr" not in streams
            assert all(output["output_type"] != "error" for output in cell["outputs"])

    def test_checks_its_results(self, path):
        assert sum(source.count("assert ") for _, source in code(path)) >= 3

    def test_is_small(self, path):
        assert path.stat().st_size < LARGEST

    def test_is_on_the_list_of_pages(self, path):
        assert f"../notebooks/{path.name}" in (ROOT / "docs" / "README.md").read_text()
