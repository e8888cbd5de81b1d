"""Check the language of comments, docstrings and pages, and fail on every offender.

Two rules of docs/style.md can be checked by a program: no sentence starts with "What", unless it is
a question, and no private word appears that the glossary of docs/architecture.md does not define.

    .venv/bin/python tools/check_language.py
"""

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("cpp", "src", "tests", "benchmarks", "examples", "tools", "docs", "notebooks")
# the page with bad examples, and this list
SKIPPED = {ROOT / "docs" / "style.md", Path(__file__).resolve()}

# A private word or phrase, and the term to use instead.
PRIVATE = {
    r"carriers?": "virtual dof",
    r"rub(s|bed|bing)?": "friction block, or slide",
    r"refus\w+ by (its |their )?names?": "raises `UnsupportedFeatureError`",
    r"(is|are|be|was|were) told": "name the function that passes the value",
    r"feels?": "depends on, or receives",
    r"for nothing": "without effect",
    r"there to compare with": "for comparison",
}
PRIVATE_WORDS = {re.compile(rf"\b{word}\b", re.IGNORECASE): use for word, use in PRIVATE.items()}
SENTENCE = re.compile(r"(?:^|(?<=[.!?] ))What\b[^.?!]*(?P<end>[.?!]?)")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


class Text(NamedTuple):
    """A comment, a docstring or a paragraph, and the line where it starts."""

    line: int
    words: str


def main() -> int:
    """Print every problem; the exit code says whether there was one."""
    problems = [
        f"{path.relative_to(ROOT)}:{text.line}: {problem}"
        for path in files()
        for text in texts(path)
        for problem in find_problems(text.words)
    ]
    print("\n".join([*problems, f"{len(problems)} problems of language"]))
    return int(bool(problems))


def find_problems(words: str) -> Iterator[str]:
    """Yield the sentences that start with "What" and the private words of a text."""
    for sentence in SENTENCE.finditer(words):
        if sentence["end"] != "?":
            yield f"a sentence starts with 'What': {sentence[0][:60]}"
    for pattern, use in PRIVATE_WORDS.items():
        for found in pattern.finditer(words):
            yield f"private word '{found[0]}': {use}"


def files() -> Iterator[Path]:
    """Yield the pages and sources of the repository."""
    yield from sorted(ROOT.glob("*.md"))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in READERS and path not in SKIPPED:
                yield path


def texts(path: Path) -> Iterator[Text]:
    """Yield the texts of a file with their white space collapsed."""
    for text in READERS[path.suffix](path.read_text()):
        yield Text(text.line, " ".join(text.words.split()))


def comments(lines: Iterator[tuple[int, bool, str]]) -> Iterator[Text]:
    """Join comments on lines of their own that follow one another: (line, on its own, text)."""
    start, end, parts = 0, -1, []
    for line, alone, words in lines:
        if not (alone and line == end + 1):
            if parts:
                yield Text(start, " ".join(parts))
            start, parts = line, []
        parts.append(words)
        end = line if alone else -1
    if parts:
        yield Text(start, " ".join(parts))


def cpp_texts(source: str) -> Iterator[Text]:
    """Yield the comments of a C++ file."""
    found = (
        (number, not code.strip(), words)
        for number, line in enumerate(source.splitlines(), 1)
        for code, mark, words in [line.partition("//")]
        if mark and not code.endswith(":")  # an address in a string
    )
    yield from comments(found)


def python_texts(source: str) -> Iterator[Text]:
    """Yield the docstrings and comments of a Python file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and (words := ast.get_docstring(node)) is not None:
            yield Text(node.body[0].lineno, words)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    yield from comments(
        (token.start[0], not token.line[: token.start[1]].strip(), token.string.lstrip("# "))
        for token in tokens
        if token.type == tokenize.COMMENT
    )


def page_texts(source: str) -> Iterator[Text]:
    """Yield the paragraphs, list items and table cells of a page, without headings and code."""
    source = FENCE.sub(lambda block: "\n" * block[0].count("\n"), source)
    start, parts = 0, []
    for number, line in enumerate([*source.splitlines(), ""], 1):
        words = line.strip()
        begins = re.match(r"[-*>|#]|\d+\.|$", words) or line.startswith("    ")
        if begins and parts:
            yield Text(start, " ".join(parts))
            parts = []
        if words.startswith("|"):
            yield from (Text(number, cell.strip()) for cell in words.split("|"))
        elif words and not words.startswith("#"):
            start = start if parts else number
            parts.append(re.sub(r"^([-*>]|\d+\.) ", "", words))


def notebook_texts(source: str) -> Iterator[Text]:
    """Yield the texts of the Markdown cells of a notebook, with lines as if they were a page."""
    cells = json.loads(source)["cells"]
    pages = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    yield from page_texts("\n\n".join(pages))


READERS = {
    ".h": cpp_texts,
    ".cc": cpp_texts,
    ".py": python_texts,
    ".md": page_texts,
    ".ipynb": notebook_texts,
}


if __name__ == "__main__":
    sys.exit(main())
