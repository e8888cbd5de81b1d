"""A report of an identification: one HTML file that contains its figures."""

from __future__ import annotations

import base64
import html
import io
from pathlib import Path
from typing import TYPE_CHECKING

import mujoco

from mujacobian._summary import html_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mujacobian.sysid.result import Identification

STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; } th, td { border: 1px solid #cbd5e1; padding: .2em .6em; }
caption { text-align: left; font-weight: bold; padding: .5em 0; } img { max-width: 100%; }
.warning { background: #fef2f2; border-left: 4px solid #dc2626; padding: .4em 1em; }
"""


def write_report(found: Identification, path: Path, title: str) -> None:
    """Write the report."""
    parts = [f"<h1>{html.escape(title)}</h1>"]
    parts += [f'<p class="warning">{html.escape(text)}</p>' for text in found.warnings]
    parts += [
        found._repr_html_(),
        _facts(found),
        "<h2>Intervals</h2>",
        _image(found.plot_intervals()),
    ]
    if found.identifiability:
        sentences = "".join(f"<li>{html.escape(text)}</li>" for text in found.identifiability)
        parts.append(f"<h2>Combinations of parameters</h2><ul>{sentences}</ul>")
    if len(found.starts) > 1:
        parts.append(_starts(found))
    parts += ["<h2>Residuals</h2>", _image(found.plot_residuals())]
    for k, fit in enumerate(found.fits):
        if fit.measured.size:
            parts += [f"<h2>Log {k}</h2>", _image(found.plot_fit(k))]
    body = "\n".join(parts)
    path.write_text(
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}'
        f"</title><style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n",
        encoding="utf-8",
    )


def _facts(found: Identification) -> str:
    """Return the key figures of the fit as a list."""
    facts = [
        f"cost {found.cost:.6g}, reduced chi-square {found.reduced_chi_square:.4g} with"
        f" {found.degrees_of_freedom} degrees of freedom",
        f"{'converged' if found.converged else 'not converged'}: {found.message}",
        f"{len(found.history)} iterates, {found.steps} simulated steps, MuJoCo"
        f" {mujoco.__version__}",
        f"not determined: {', '.join(found.undetermined) or 'none'}",
        f"on bounds: {', '.join(found.on_bounds) or 'none'}",
    ]
    return f"<ul>{''.join(f'<li>{html.escape(fact)}</li>' for fact in facts)}</ul>"


def _starts(found: Identification) -> str:
    """Return the table of all starts."""
    rows = [
        (str(k), str(start.seed or "given"), f"{start.cost:.6g}", str(start.converged))
        for k, start in enumerate(found.starts)
    ]
    return html_table("Starts", ("start", "seed", "cost", "converged"), rows)


def _image(figure: Figure) -> str:
    """Return a figure as an image that the file contains."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="" src="data:image/png;base64,{data}">'
