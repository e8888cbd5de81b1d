"""The Python blocks of README.md and docs/ that need Newton run as written."""

import pytest

from tests.pages import NEWTON, blocks, packages, pages, provide_models

BLOCKS = {page: [block for block in blocks(page) if packages(block) & NEWTON] for page in pages()}


@pytest.mark.parametrize("page", [page for page, found in BLOCKS.items() if found])
def test_blocks_run(page, tmp_path, monkeypatch, record_property):
    provide_models(tmp_path)
    monkeypatch.chdir(tmp_path)
    for block in BLOCKS[page]:
        block.evaluate()
        record_property("block", f"{page}:{block.line}")
