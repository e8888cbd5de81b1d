"""Check the documentation: links resolve, what pages cite exists, lines are short."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("cpp", "src", "tests", "benchmarks", "examples")
COPIES = ROOT / "docs" / "notebooks"  # made for the site
DERIVATIONS = ROOT / "docs" / "derivations"
LINE_LENGTH = 120

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
LABEL = re.compile(r"[A-Z]{2,}-\d+[a-z]?")
CITATION = re.compile(rf"\(({LABEL.pattern}(?:(?:, | and |-){LABEL.pattern})*)\)")
# the label of a displayed equation, and of a statement in the text
DEFINITION = re.compile(rf"\\tag\{{({LABEL.pattern})\}}|\*\*\(({LABEL.pattern})\)\*\*")
PAGE = re.compile(r"docs/[\w/]+\.md")
# a line of a call tree: functions, and the file that defines them
CALLS = re.compile(r"\s*(\S.*?) {2,}((?:cpp|src)/[\w/]+\.(?:cc|h|py))")
CALL = re.compile(r"(?:\w+(?:::|\.))*(\w+)")


def main() -> int:
    """Print every problem; the exit code says whether there was one."""
    problems = [
        *broken_links(),
        *long_lines(),
        *unknown_citations(),
        *repeated_definitions(),
        *misplaced_functions(),
    ]
    for problem in problems:
        print(problem)
    pages = len(list(markdown_pages()))
    print(f"{pages} pages, {len(list(definitions()))} equations, {len(problems)} problems")
    return int(bool(problems))


def markdown_pages() -> Iterator[Path]:
    """Yield the pages of the repository, not those of environments and build folders."""
    yield from sorted(ROOT.glob("*.md"))
    for folder in ("docs", "notebooks", *SOURCES):
        yield from (
            page for page in sorted((ROOT / folder).rglob("*.md")) if COPIES not in page.parents
        )


def broken_links() -> Iterator[str]:
    """Yield links to files or headings that do not exist."""
    for page in markdown_pages():
        text = FENCE.sub("", page.read_text())
        for target in LINK.findall(text):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            goal = (page.parent / name).resolve() if name else page
            if not goal.exists():
                yield f"{page.relative_to(ROOT)}: no file {target}"
            elif anchor and anchor not in anchors(goal):
                yield f"{page.relative_to(ROOT)}: no heading {target}"


def long_lines() -> Iterator[str]:
    """Yield lines of pages that are longer than LINE_LENGTH characters."""
    for page in markdown_pages():
        for number, line in enumerate(page.read_text().splitlines(), 1):
            if len(line) > LINE_LENGTH:
                place = f"{page.relative_to(ROOT)}:{number}"
                yield f"{place}: {len(line)} characters, at most {LINE_LENGTH}"


def anchors(page: Path) -> set[str]:
    """Return the anchors GitHub makes of the headings of a page."""
    headings = HEADING.findall(FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def unknown_citations() -> Iterator[str]:
    """Yield equation labels and pages that pages and sources cite and the documentation lacks."""
    known = {label for _, label in definitions()}
    for path in (*source_files(), *markdown_pages()):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            place = f"{path.relative_to(ROOT)}:{number}"
            for citation in CITATION.findall(line):
                for label in LABEL.findall(citation):
                    if label not in known:
                        yield f"{place}: no equation ({label}) in docs/derivations"
            for page in PAGE.findall(line):
                if not (ROOT / page).exists():
                    yield f"{place}: no page {page}"


def repeated_definitions() -> Iterator[str]:
    """Yield labels that more than one equation has."""
    places: dict[str, str] = {}
    for page, label in definitions():
        if label in places:
            yield f"{page.relative_to(ROOT)}: ({label}) is also an equation of {places[label]}"
        places[label] = page.name


def misplaced_functions() -> Iterator[str]:
    """Yield functions of the call trees in docs/architecture.md that their file does not define."""
    page = (ROOT / "docs" / "architecture.md").read_text().splitlines()
    for number, line in enumerate(page, 1):
        if line.startswith("|") or not (calls := CALLS.match(line)):
            continue
        path = ROOT / calls[2]
        source = path.read_text() if path.exists() else ""
        for call in calls[1].split(", "):
            if (found := CALL.match(call)) and not defines(source, found[1]):
                yield f"docs/architecture.md:{number}: {calls[2]} does not define {found[0]}"


def defines(source: str, name: str) -> bool:
    """Return whether a Python or C++ source defines a class, function, method or binding."""
    python = rf"^ *(?:def|class) {name}\b|^{name} = "
    function = rf"^ {{0,2}}(?! |return\b)[\w:<>&*\[\], ]+[ &*:]{name}\("
    cpp = rf'{function}|^(?:class|struct) {name}\b|"{name}"'
    return re.search(f"{python}|{cpp}", source, re.MULTILINE) is not None


def definitions() -> Iterator[tuple[Path, str]]:
    """Yield the labels of all equations and statements in docs/derivations, with their pages."""
    for page in sorted(DERIVATIONS.glob("*.md")):
        for displayed, stated in DEFINITION.findall(page.read_text()):
            yield page, displayed or stated


def source_files() -> Iterator[Path]:
    """Yield the C++ and Python sources."""
    for folder in SOURCES:
        for pattern in ("*.h", "*.cc", "*.py"):
            yield from sorted((ROOT / folder).rglob(pattern))


if __name__ == "__main__":
    sys.exit(main())
