"""The report of a sweep: the verdicts on all states, by source and by reason."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import metadata

import mujoco
import numpy as np

from benchmarks.zoo import judge
from benchmarks.zoo.sources import Source
from benchmarks.zoo.sweep import CRASHED, FAILED, HUNG, Record

CONVERGED_WORDS = (judge.EXACT, judge.REFUSED, judge.NOT_JUDGED, judge.WRONG)
OWN_WORDS = (judge.EXACT, judge.SOLVER, judge.COLLIDER, *CONVERGED_WORDS[1:])
FLAWS = (
    judge.NOT_FINITE,
    judge.CHANGED,
    judge.NOT_REPEATABLE,
    judge.DIFFERENCED,
    judge.RAISED,
)
LOST = (CRASHED, HUNG, FAILED)
SILENT = "silent"  # solver or collider not converged, without a warning
FAILURES = {judge.WRONG, SILENT, *FLAWS, *LOST}
SHOWN = 12  # models listed per reason


def failures(records: list[Record]) -> int:
    """Return the number of states that are wrong, silent, flawed or lost."""
    return sum(bool(FAILURES & set(_words(state))) for _, state in _states(records))


def report(records: list[Record], sources: list[Source], failed: dict[str, str]) -> str:
    """Return the whole report in Markdown."""
    loaded = [record for record in records if "hash" in record]
    models = [record for record in loaded if record["states"]]
    states = list(_states(records))
    lines = [
        "# Zoo",
        "",
        f"{len(records)} files, {len(loaded)} load, {len(models)} distinct models with degrees of "
        f"freedom, {len(states)} states; MuJoCo {mujoco.__version__}, mujacobian "
        f"{metadata.version('mujacobian')}. {_total(states)}",
        "",
        "## Solver and collider converged",
        "",
        *_table(records, "converged", CONVERGED_WORDS, (*FLAWS, *LOST)),
        "",
        _errors(states, "converged"),
        "",
        "## The model's own settings",
        "",
        *_table(records, "own", OWN_WORDS, (SILENT,)),
        "",
        _errors(states, "own"),
        "",
        "`solver`, `collider`: the step or its linearization differs from the converged one; "
        "`silent`: one of these, without a warning in this state or an earlier one.",
    ]
    for title, found in (
        ("Refused", _reasons(records, judge.REFUSED)),
        ("Sensors refused", _sensors(records)),
        ("Not judged", _reasons(records, judge.NOT_JUDGED)),
    ):
        lines += ["", f"## {title}", "", *grouped(found)]
    lines += ["", "## Wrong, silent, flawed or lost", "", *_list(records, FAILURES)]
    lines += ["", "## Solver or collider", "", *_list(records, {judge.SOLVER, judge.COLLIDER})]
    lines += ["", "## Refused states", "", *_list(records, {judge.REFUSED})]
    lines += ["", "## Sources", "", *_sources(sources, failed)]
    return "\n".join(lines) + "\n"


def _states(records: list[Record]) -> Iterator[tuple[Record, Record]]:
    """Yield all states with the records of their files, and whether the model has warned."""
    for record in records:
        warned = False
        for state in record["states"]:
            warned |= bool(state.get("warned"))
            yield record, state | {"has_warned": warned}


def _words(state: Record) -> Iterator[str]:
    """Yield the flaws of a state, then its verdicts or the way in which its process was lost."""
    yield from state.get("flaws", [])
    if "fate" in state:
        yield state["fate"]
        return
    yield from {state["own"]["word"], state["converged"]["word"]}
    if state["own"]["word"] in (judge.SOLVER, judge.COLLIDER) and not state["has_warned"]:
        yield SILENT


def _word(state: Record, settings: str) -> str:
    return state["fate"] if "fate" in state else state[settings]["word"]


def _total(states: list[tuple[Record, Record]]) -> str:
    words = Counter(word for _, state in states for word in set(_words(state)))
    return ", ".join(f"{words[word]} {word}" for word in (judge.WRONG, SILENT, *LOST, *FLAWS))


def _table(
    records: list[Record], settings: str, words: tuple[str, ...], more: tuple[str, ...]
) -> Iterator[str]:
    """Yield a table with one row per source and their sum."""
    extra = [word for word in more if word not in words]
    head = ["source", "files", "load", "models", "states", *words, *extra]
    yield f"| {' | '.join(head)} |"
    yield "|---" + "|---:" * (len(head) - 1) + "|"
    rows = defaultdict(Counter[str])
    for record in records:
        for name in (record["source"], "all"):
            rows[name] += _counts(record, settings)
    for name in [*sorted(rows.keys() - {"all"}), *(["all"] if rows else [])]:
        cells = [name, *(str(rows[name][word]) for word in head[1:])]
        yield f"| {' | '.join(f'**{cell}**' if name == 'all' else cell for cell in cells)} |"


def _counts(record: Record, settings: str) -> Counter[str]:
    counts = Counter(files=1, load="hash" in record, models=bool(record["states"]))
    for _, state in _states([record]):
        counts.update(["states", _word(state, settings), *state.get("flaws", [])])
        counts[SILENT] += SILENT in _words(state)
    return counts


def _errors(states: list[tuple[Record, Record]], settings: str) -> str:
    found = [
        state[settings]["error"]
        for _, state in states
        if "fate" not in state and state[settings]["word"] == judge.EXACT
    ]
    if not found:
        return "No state is exact."
    median, high, worst = np.quantile(found, [0.5, 0.99, 1.0])
    return (
        f"Relative errors of exact states: median {median:.0e}, 99 % {high:.0e}, worst {worst:.0e}."
    )


def _reasons(records: list[Record], word: str) -> Iterator[tuple[str, str]]:
    """Yield the reason and the file of every state with a verdict at either setting."""
    for record, state in _states(records):
        if state.get("fate") == word:
            yield state["reason"], record["file"]
        elif "fate" not in state:
            for verdict in (state["converged"], state["own"]):
                if verdict["word"] == word:
                    yield verdict["reason"], record["file"]
                    break


def _sensors(records: list[Record]) -> Iterator[tuple[str, str]]:
    for record, state in _states(records):
        if state.get("sensors_refused"):
            yield state["sensors_refused"], record["file"]


def grouped(found: Iterator[tuple[str, str]]) -> Iterator[str]:
    """Yield a table of reasons, most frequent first, without the names and numbers in them."""
    groups: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for reason, file in found:
        groups[_general(reason)][file] += 1
    yield "| reason | models | states | names |"
    yield "|---|---:|---:|---|"
    for reason, files in sorted(groups.items(), key=lambda group: -len(group[1])):
        names = ", ".join(_short(file) for file in list(files)[:SHOWN])
        more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
        yield f"| {escaped(reason)} | {len(files)} | {files.total()} | {names}{more} |"


def _general(reason: str) -> str:
    """Return a reason without the names and numbers of one model."""
    plain = re.sub(r'"[^"]*"', "*", reason)
    return re.sub(r"(?<![\w.])-?\d+(\.\d+)?(e[-+]?\d+)?\b", "*", plain)


def _short(file: str) -> str:
    parts = file.split("/")
    return "/".join(dict.fromkeys([parts[0], *parts[-2:]]))


def escaped(text: str) -> str:
    """Return text for a cell of a table."""
    return " ".join(text.replace("|", "\\|").split())


def _list(records: list[Record], words: set[str]) -> Iterator[str]:
    """Yield a line for every state with one of these verdicts."""
    none = True
    for record, state in _states(records):
        found = words & set(_words(state))
        if found:
            none = False
            yield f"- {record['file']}, state {state['state']}: {escaped(_details(state, found))}"
    if none:
        yield "None."


def _details(state: Record, words: set[str]) -> str:
    if "fate" in state:
        return f"{state['fate']}: {state['reason']}"
    parts = [word for word in (*state["flaws"], SILENT) if word in words]
    if SILENT in words:
        words = words | {state["own"]["word"]}
    shown = set()
    for settings in ("converged", "own"):
        verdict = state[settings]
        if verdict["word"] in words:
            error = "" if verdict["error"] is None else f" {verdict['error']:.1e}"
            why = "" if verdict["reason"] in shown else verdict["reason"]
            shown.add(why)
            parts.append(f"{settings} {verdict['word']}{error} {why}".strip())
    return "; ".join(parts)


def _sources(sources: list[Source], failed: dict[str, str]) -> Iterator[str]:
    for source in sources:
        version = f" {source.version}" if source.version else ""
        yield f"- {source.name}{version}: {len(source.files)} files"
    for package, reason in failed.items():
        yield f"- {package} could not be installed: {escaped(reason)}"
