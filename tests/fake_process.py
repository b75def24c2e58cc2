# SPDX-License-Identifier: Apache-2.0
"""Runs a script on the fake driver in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

TESTS = Path(__file__).resolve().parent
PREAMBLE = """
import gc, os, sys, threading
sys.path.insert(0, {tests!r})
from fake_cuda import FAKE
import numpy as np
from pinzk._core.memory import MemoryBudget, PinnedPool, PinnedVec
from pinzk.curves import BN254
from pinzk.errors import *
MIB = 1 << 20
"""


def run(script: str, preamble: str = PREAMBLE, **environment: str) -> str:
    """Run a script; it must end with 0 and say nothing on stderr. Returns what it printed."""
    code = preamble.format(tests=str(TESTS)) + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout
