"""The Python blocks of README.md and docs/ run as written, page by page."""

import pytest

from tests.pages import blocks, missing, pages, provide_models


@pytest.mark.parametrize("page", pages())
def test_blocks_run(page, tmp_path, monkeypatch, record_property):
    provide_models(tmp_path)
    monkeypatch.chdir(tmp_path)
    skipped = set()
    for block in blocks(page):
        if absent := missing(block):
            skipped |= absent
        else:
            block.evaluate()
            record_property("block", f"{page}:{block.line}")
    if skipped:
        record_property("skipped", f"{page}: {', '.join(sorted(skipped))} not installed")
