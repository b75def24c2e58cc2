# SPDX-License-Identifier: Apache-2.0
"""Set-up of all tests: the installed build is what is tested; hypothesis profiles; snarkjs as a peer."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
SNARKJS = ROOT / "tests" / "node" / "node_modules" / "snarkjs" / "build" / "cli.cjs"

# `python -m pytest` puts the checkout first on the path, and the package there has no compiled modules
sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != ROOT]

# a shell that starts tests in the background has them ignore Ctrl-C, and so would every process that they start
signal.signal(signal.SIGINT, signal.default_int_handler)

# derandomised, so that a run says the same thing twice; "search" is run by hand, for new counterexamples
settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


SANITIZED = os.environ.get("PINZK_SANITIZED") == "1"  # set by `make sanitize`


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The sanitizer job leaves out what snarkjs checks: the same native code runs elsewhere, without node's minutes."""
    if SANITIZED:
        left_out = [i for i in items if "snarkjs" in getattr(i, "fixturenames", ())]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [i for i in items if i not in left_out]


def pytest_report_header() -> list[str]:
    """Say which build is tested."""
    import pinzk
    from pinzk._core import cpu

    if SANITIZED and b"__asan_init" not in Path(cpu.__file__).read_bytes():
        pytest.exit(f"{cpu.__file__} was not built with sanitizers: run `make sanitize`", returncode=1)
    return [f"pinzk: {Path(pinzk.__file__).parent}, {cpu.num_threads()} threads{', sanitized' * SANITIZED}"]


@pytest.fixture(scope="session")
def snarkjs() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run snarkjs with the given arguments; skips where node is absent."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    assert SNARKJS.exists(), "snarkjs is not installed: run `make node` (npm ci in tests/node)"

    def run(*args: str | Path, check: bool = False) -> subprocess.CompletedProcess[str]:
        command = [node, str(SNARKJS), *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=check)

    return run
