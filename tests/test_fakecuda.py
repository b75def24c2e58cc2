# SPDX-License-Identifier: Apache-2.0
"""Starts the tests of `tests/fakecuda`, each file in a process whose libcuda.so.1 is the fake one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cases import ROOT
from simulator import build_driver

FOLDER = ROOT / "tests" / "fakecuda"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("test_*.py")), ids=lambda p: p.stem)
def test_on_the_fake_driver(path: Path) -> None:
    libcuda = build_driver()
    environment = {**os.environ, "PINZK_FAKE_CUDA": str(libcuda), "LD_LIBRARY_PATH": str(libcuda)}
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
