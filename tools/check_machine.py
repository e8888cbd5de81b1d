"""Say what this machine lacks for building mujacobian."""

# runs before anything is installed, and on an old Python too: it has to say that it is old
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

PROBE = "#include <concepts>\n#include <span>\nint main() { return 0; }\n"


def missing_python():
    """Return what is wrong with the running Python, or None."""
    if sys.version_info < (3, 11):
        version = sys.version.split()[0]
        return (
            f"Python >= 3.11 is needed; {sys.executable} is {version}. "
            "Choose another one: make PYTHON=python3.12"
        )
    header = os.path.join(sysconfig.get_path("include"), "Python.h")
    if not os.path.exists(header):
        return f"Python's headers are missing ({header}). On Debian: apt install python3-dev"
    return None


def missing_compiler():
    """Return what is wrong with the C++ compiler, or None."""
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["c++", "g++", "clang++"]
    found = next((name for name in names if shutil.which(name.split()[0])), None)
    if found is None:
        return (
            f"no C++ compiler found (looked for {', '.join(names)}). Install one (Debian: apt "
            "install g++; macOS: xcode-select --install) or name it: make CXX=/path/to/compiler"
        )
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "probe.cc")
        with open(source, "w") as stream:
            stream.write(PROBE)
        command = [*found.split(), "-std=c++20", source, "-o", os.path.join(folder, "probe")]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if result.returncode:
        output = result.stdout.decode(errors="replace")
        return f"{found} does not compile C++20 (gcc >= 11 or clang >= 14 is needed):\n{output}"
    return None


def main():
    """Print every problem; the exit code is their number."""
    problems = [problem for problem in (missing_python(), missing_compiler()) if problem]
    for problem in problems:
        sys.stderr.write(f"mujacobian cannot be built here: {problem}\n")
    return len(problems)


if __name__ == "__main__":
    sys.exit(main())
