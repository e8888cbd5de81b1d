"""Judge derivatives with respect to all families of parameters: python -m benchmarks.parameters.

One random direction of each family is judged at states of every distinct model of the zoo. The help
of `python -m benchmarks.zoo` lists where the models come from. The reference is extrapolated
differences of `Parameters.apply` and `mj_step` with a converged solver and collider.

With --constrained, mass, inertia and armature are judged to 1e-6. The states are those in which
contacts, limits, dry friction or equalities are active and the constants of `mj_setConst` matter.
The reference is differences of models whose fields are edited and passed to `mj_setConst`.

The program appends a line for each verdict to build/parameters.jsonl (build/constrained.jsonl) and
writes a table next to it. An interrupted sweep continues where it stopped, unless mujacobian,
MuJoCo, the judge, the seed or the options have changed. The exit status is 1 if any verdict is
wrong or lost.
"""

import hashlib
import sys
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from benchmarks.parameters import constrained
from benchmarks.parameters.report import failures, report
from benchmarks.parameters.sweep import Families, ParameterSweep
from benchmarks.zoo import command
from mujacobian._parameters.fields import FIELDS


def main() -> None:
    """Collect the models, judge them and write the report."""
    parser = command.make_parser("python -m benchmarks.parameters", __doc__)
    parser.add_argument("--families", nargs="+", choices=FIELDS, metavar="FAMILY", default=None)
    parser.add_argument("--states", type=int, default=2)
    parser.add_argument("--derived", choices=("recompute", "hold"), default="recompute")
    parser.add_argument("--largest", type=int, default=80, help="leave out models with more dofs")
    parser.add_argument("--constrained", action="store_true", help="judge inertia by mj_setConst")
    arguments = parser.parse_args()
    offered = constrained.FIELDS if arguments.constrained else tuple(FIELDS)
    families = tuple(arguments.families or offered)
    if not set(families) <= set(offered):
        parser.error(f"--constrained judges {', '.join(offered)} only")
    work = Families(families, arguments.states, arguments.derived, arguments.constrained)
    console = Console()
    outcome = command.run(
        arguments,
        "constrained" if arguments.constrained else "parameters",
        {"work": repr(work), "largest": arguments.largest, "judge": _judge_hash()},
        lambda lines, log: ParameterSweep(
            lines, log, arguments.seed, work, len(work), arguments.largest
        ),
        console,
    )
    text = report(outcome.records, families)
    path = outcome.lines.with_suffix(".md")
    path.write_text(text)
    console.print(Markdown(text.split("\n## Refused\n")[0]))
    console.print(f"written: {path}, {outcome.lines}")
    sys.exit(failures(outcome.records) > 0)


def _judge_hash() -> str:
    """Return a hash of the files that a verdict depends on."""
    folder = Path(__file__).parent
    names = ("judge.py", "constrained.py", "sweep.py")
    return hashlib.sha1(b"".join((folder / name).read_bytes() for name in names)).hexdigest()


if __name__ == "__main__":
    main()
