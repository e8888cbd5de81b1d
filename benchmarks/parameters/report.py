"""The tables of a sweep over families of parameters."""

from collections import Counter
from collections.abc import Iterator, Sequence

from benchmarks.parameters.judge import EXACT, NO_EFFECT, NOT_JUDGED, REFUSED, WRONG
from benchmarks.zoo.report import escaped, grouped
from benchmarks.zoo.sweep import CRASHED, FAILED, HUNG, Record

WORDS = (EXACT, NO_EFFECT, REFUSED, NOT_JUDGED, WRONG)
LOST = (CRASHED, HUNG, FAILED)
FAILURES = (WRONG, *LOST)


def verdicts(records: list[Record]) -> list[Record]:
    """Return the verdicts of a sweep, without the records of files."""
    return [record for record in records if "item" in record]


def failures(records: list[Record]) -> int:
    """Return the number of wrong or lost verdicts."""
    return sum(_word(record) in FAILURES for record in verdicts(records))


def report(records: list[Record], families: Sequence[str]) -> str:
    """Return the whole report in Markdown."""
    found = verdicts(records)
    lines = [
        "# Parameters",
        "",
        f"{len({r['file'] for r in found})} distinct models, {len(found)} verdicts. A verdict is on"
        " one random direction of a family at one state; `models` have an exact one, and `worst` is"
        " the largest relative error among these. `no effect`: nothing changes at all."
        " `lost`: a crash, a hang or an error of the judge.",
        "",
        *_table(found, families),
        "",
        "## Wrong or lost",
        "",
        *_list([record for record in found if _word(record) in FAILURES]),
    ]
    for word in (REFUSED, NOT_JUDGED):
        reasons = ((_reason(r), r["file"]) for r in found if _word(r) == word)
        lines += ["", f"## {word.capitalize()}", "", *grouped(reasons)]
    return "\n".join(lines) + "\n"


def _table(found: list[Record], families: Sequence[str]) -> Iterator[str]:
    head = ["family", *WORDS, "lost", "models", "worst"]
    yield f"| {' | '.join(head)} |"
    yield "|---" + "|---:" * (len(head) - 1) + "|"
    for family in families:
        yield _row(family, [record for record in found if record.get("family") == family])
    yield _row("all", found)


def _row(name: str, found: list[Record]) -> str:
    counts = Counter(map(_word, found))
    exact = [record for record in found if _word(record) == EXACT]
    models = len({record["file"] for record in exact})
    worst = max((record["error"] for record in exact), default=0.0)
    lost = sum(counts[word] for word in LOST)
    cells = [name, *(str(counts[word]) for word in WORDS), str(lost), str(models), f"{worst:.0e}"]
    return f"| {' | '.join(cells)} |"


def _list(found: list[Record]) -> Iterator[str]:
    for record in found:
        where = f"{record['file']}, {record.get('state', '')}, {record.get('family', '')}"
        error = f" by {record['error']:.1e}" if "error" in record else ""
        yield f"- {where}: {_word(record)}{error}, {escaped(_reason(record))}"
    if not found:
        yield "None."


def _word(record: Record) -> str:
    return str(record["fate"] if "fate" in record else record["word"])


def _reason(record: Record) -> str:
    return str(record["reason"] if "fate" in record else record["why"])
