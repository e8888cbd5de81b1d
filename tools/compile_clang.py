"""Compile the core with Clang, with warnings as errors, for all or the given targets.

The compiler is that of the package ziglang: Clang with libc++ and the headers of Linux, macOS and
Windows. For Linux on x86-64, the bindings and the module of tests/unit are compiled, too. Nothing
is linked. Most of the time is that of the standard headers, so the common ones are precompiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import nanobind
import ziglang

ROOT = Path(__file__).resolve().parent.parent
ZIG = Path(ziglang.__file__).parent / "zig"
HERE = "x86_64-linux-gnu"
TARGETS = (HERE, "aarch64-linux-gnu", "aarch64-macos", "x86_64-windows-gnu")
FLAGS = (
    *("-std=c++20", "-Wall", "-Wextra", "-Wshadow", "-Wpedantic", "-Werror"),
    *("-Wno-unused-command-line-argument", "-fno-sanitize=all", "-g0", "-Icpp"),
    '-DMUJACOBIAN_VERSION="0"',
)
# Python and nanobind; their own warnings do not count
BINDINGS = (f"-isystem{sysconfig.get_path('include')}", f"-isystem{nanobind.include_dir()}")
# standard headers that at least four of five files include, directly or through headers of ours
COMMON = ("cmath", "cstddef", "cstdint", "cstring", "new", "string", "type_traits", "vector")


def sources(target: str) -> list[Path]:
    """Return the files that can be compiled for a target."""
    everything = sorted((ROOT / "cpp").rglob("*.cc"))
    if target == HERE:
        return everything + sorted((ROOT / "tests" / "unit").glob("*.cc"))
    return [path for path in everything if path.parent.name != "bindings"]


def run_clang(target: str, *arguments: str | Path) -> str:
    """Return the messages of the compiler, empty if it succeeds."""
    flags = (*FLAGS, *BINDINGS, "-march=x86_64_v3") if target == HERE else FLAGS
    cache = {"ZIG_GLOBAL_CACHE_DIR": str(ROOT / "build" / "zig")}  # `make clean` removes it
    result = subprocess.run(
        [ZIG, "c++", "-target", target, *flags, *arguments],
        cwd=ROOT,
        env={**os.environ, **cache},
        capture_output=True,
        text=True,
    )
    return result.stderr if result.returncode else ""


def precompile(target: str, folder: Path) -> Path:
    """Return the precompiled header of the common standard headers."""
    header, output = folder / "common.h", folder / "common.pch"
    header.write_text("".join(f"#include <{name}>\n" for name in COMMON))
    message = run_clang(target, "-x", "c++-header", header, "-o", output)
    if message:
        raise RuntimeError(f"the standard headers do not compile for {target}:\n{message}")
    return output


def compile_one(target: str, common: Path, source: Path) -> str:
    """Return the messages of the compiler, empty if it accepts the file."""
    output = common.parent / f"{'_'.join(source.relative_to(ROOT).parts)}.o"
    return run_clang(target, "-include-pch", common, "-c", source, "-o", output)


def main(targets: list[str]) -> None:
    """Compile all files for all targets; the exit code is 1 if a file fails."""
    failures = 0
    for target in targets or TARGETS:
        begin, files = time.perf_counter(), sources(target)
        with (
            tempfile.TemporaryDirectory() as folder,
            ThreadPoolExecutor(os.cpu_count()) as pool,
        ):
            common = precompile(target, Path(folder))
            messages = pool.map(partial(compile_one, target, common), files)
            failed = [message for message in messages if message]
        print(*failed, sep="\n", end="")
        seconds = time.perf_counter() - begin
        print(f"{target}: {len(files)} files, {len(failed)} failed, {seconds:.0f} s")
        failures += len(failed)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main(sys.argv[1:])
