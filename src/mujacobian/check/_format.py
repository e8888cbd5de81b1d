"""A report as a table for a terminal, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import mujoco
from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from mujacobian.check._report import Report, StateReport
from mujacobian.check._terminal import printable

BLOCKS = "ABCD"
STYLES = {
    "exact": "green",
    "wrong": "bold red",
    "refused": "yellow",
    "unconverged": "yellow",
    "loose": "yellow",
}
TIMED = ("ours", "fd")
CAPTION = (
    "A to D: worst relative error, compared with extrapolated differences of mj_step (unconverged: "
    "plain differences at the model's own settings). FDc is centered mjd_transitionFD; /step is "
    "the time of our derivative alone over one mj_step."
)
SHOWN = 4  # elements listed per reason
LISTED = 12  # states in the table
KINDS = ("joint", "tendon", "equality", "actuator", "sensor", "flex", "plugin")


def as_text(report: Report, name: str) -> Group:
    """Return the report for a terminal."""
    parts: list[Any] = [_coverage(report, name), ""]
    if report.refused:
        parts += [_refusals(report), ""]
    parts += [_states(report), ""]
    parts += _notes(report)
    parts.append(_summary(report))
    return Group(*parts)


def as_dict(report: Report, name: str, seed: int) -> dict[str, Any]:
    """Return the report for JSON. Numbers that are not finite become null."""
    model = report.model
    return {
        "model": name,
        "mujoco": mujoco.__version__,
        "seed": seed,
        "states_file": report.file or None,
        "sizes": {key: int(getattr(model, key)) for key in ("nq", "nv", "na", "nu", "nsensordata")},
        "covered": {kind: {"total": n, "refused": bad} for kind, n, bad in _counts(report)},
        "unsupported": [{"element": u.element, "reason": u.reason} for u in report.refused],
        "fd_missing": report.differences_missing or None,
        "states": [_state_dict(state) for state in report.states],
        "exact": report.exact,
    }


def _state_dict(state: StateReport) -> dict[str, Any]:
    return {
        "name": state.name,
        "constraint_rows": state.rows,
        "contacts": state.contacts,
        "verdict": state.verdict,
        "reason": state.reason or None,
        "sensors_refused": state.sensors_refused or None,
        "tolerance": state.tolerance,
        "columns_judged": state.columns,
        "share_trusted": state.share,
        "solver_error": state.solver,
        "solver_share": state.solver_share,
        "collider_error": _finite(state.collider),
        "collider_share": state.collider_share,
        "error": {key: _finite(value) for key, value in state.ours.items()},
        "error_converged": {key: _finite(value) for key, value in state.converged.items()},
        "error_fd_centred": {key: _finite(value) for key, value in state.fd.items()},
        "microseconds": state.times,
        "fd_over_ours": state.speedup,
        "derivative_over_step": state.per_step,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _counts(report: Report) -> Iterator[tuple[str, int, int]]:
    """Yield the types of elements, their numbers, and the numbers of unsupported ones."""
    sizes = dict(zip(KINDS, ("njnt", "ntendon", "neq", "nactuator", "nsensor", "nflex", "nplugin"),
                     strict=True))  # fmt: skip
    for kind, size in sizes.items():
        total = int(getattr(report.model, size))
        if total:
            yield kind, total, sum(u.element.startswith(f"{kind} ") for u in report.refused)


def _coverage(report: Report, name: str) -> Text:
    model = report.model
    text = Text()
    text.append(printable(name), style="bold")
    text.append(f"  nv {model.nv}, na {model.na}, nu {model.nu}, sensors {model.nsensordata}\n")
    for k, (kind, total, refused) in enumerate(_counts(report)):
        text.append(", " if k else "covered: ")
        text.append(f"{total - refused}/{total} {kind}", style="yellow" if refused else "green")
    return text


def _refusals(report: Report) -> Table:
    """Return a table with one row per reason and its first few elements."""
    reasons: dict[str, list[str]] = {}
    for refused in report.refused:
        reasons.setdefault(refused.reason, []).append(refused.element)
    table = Table("refused", "elements", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for reason, elements in reasons.items():
        more = f" and {len(elements) - SHOWN} more" if len(elements) > SHOWN else ""
        named = printable(", ".join(elements[:SHOWN]) + more)
        table.add_row(escape(reason), escape(named), style="yellow")
    return table


def _states(report: Report) -> Table:
    """Return a table with two lines per state: our results, and those of mjd_transitionFD."""
    listed = _listed(report.states)
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=0,
        show_edge=False,
        caption=_caption(report, len(listed)),
        caption_justify="left",
    )
    for heading in ("state", "verdict", ""):
        table.add_column(heading)
    blocks = [b for b in BLOCKS if any(b in state.ours for state in report.states)]
    for heading in (*blocks, "trusted", "µs", "FDc/ours", "/step"):
        table.add_column(heading, justify="right", no_wrap=True)
    for state in listed:
        label = f"{state.name}\n{state.contacts} contacts, {state.rows} rows"
        verdict = Text(_verdict(state), style=STYLES.get(state.verdict, "magenta"))
        table.add_row(escape(printable(label, keep="\n")), verdict, *_cells(state, blocks))
    return table


def _caption(report: Report, listed: int) -> str:
    """Return the footer of the table of states, of which `listed` are in the table."""
    caption = CAPTION
    if report.differences_missing:
        caption += f"\nFDc is missing: {report.differences_missing}."
    if listed < len(report.states):
        caption += (
            f"\n{listed} of {len(report.states)} states are listed: those that are not exact, "
            "then those with the largest errors. --json has all."
        )
    return caption


def _listed(states: list[StateReport]) -> list[StateReport]:
    """Return the states of the table, in their order: those that say most if there are many."""
    order = sorted(range(len(states)), key=lambda k: (states[k].exact, -states[k].worst))
    return [states[k] for k in sorted(order[:LISTED])]


def _cells(state: StateReport, blocks: list[str]) -> Iterator[str]:
    """Yield the cells of a state with measurements; none if it is not supported."""
    if not state.ours:
        return
    yield "ours\nFDc"
    for block in blocks:
        yield f"{_number(state.ours.get(block))}\n{_number(state.fd.get(block))}"
    yield f"{state.share:.1%}"
    yield "\n".join(f"{state.times[key]:.0f}" if key in state.times else "-" for key in TIMED)
    yield "-" if state.speedup is None else f"{state.speedup:.1f}"
    yield f"{state.per_step:.2f}"


def _notes(report: Report) -> Iterator[Text]:
    """Yield the reasons of the verdicts, each one once with its states."""
    notes: dict[str, list[str]] = {}
    for state in report.states:
        for note in (state.reason, state.sensors_refused):
            if note:
                notes.setdefault(note, []).append(state.name)
    for note, names in islice(notes.items(), LISTED):
        where = _where(names, len(report.states))
        yield Text(printable(f"{where}: {note}"), style="yellow")
    if len(notes) > LISTED:
        yield Text(f"and {len(notes) - LISTED} more notes, see --json", style="yellow")


def _where(names: list[str], count: int) -> str:
    """Return the names of the states that a note is about, or their number if they are many."""
    if len(names) == count:
        return "every state"
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _verdict(state: StateReport) -> str:
    if state.verdict == "exact" and state.sensors_refused:
        return "exact\n(no C, D)"
    return state.verdict


def _number(error: float | None) -> str:
    return "-" if error is None else f"{error:.0e}"


def _summary(report: Report) -> Text:
    exact = sum(state.exact for state in report.states)
    early = sum(state.verdict == "unconverged" for state in report.states)
    text = f"{exact} of {len(report.states)} states exact in every block"
    if early:
        text += f"; in {early} MuJoCo stops before it converges"
    return Text(
        text,
        style="bold green" if report.exact else "bold yellow",
    )
