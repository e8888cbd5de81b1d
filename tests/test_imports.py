"""Packages that only a bridge needs are imported with the bridge, not before."""

import subprocess
import sys


def test_a_missing_package_is_named_with_the_pip_line():
    """Importing mujacobian does not import the package either."""
    code = (
        "import sys, mujacobian; assert not {'torch', 'jax', 'newton'} & set(sys.modules);"
        "sys.modules.update(torch=None, jax=None, newton=None)\n"
        "for name in ('torch', 'jax', 'newton'):\n"
        "  try: __import__('mujacobian.' + name)\n"
        "  except ImportError as error: print(error)\n"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'mujacobian[torch]'" in made.stdout
    assert "pip install 'mujacobian[jax]'" in made.stdout
    assert "pip install 'mujacobian[newton]'" in made.stdout
