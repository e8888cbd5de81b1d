"""These tests need Newton and its own MuJoCo: `make test-newton`. Elsewhere they are skipped."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("newton") else ["test_*.py"]
