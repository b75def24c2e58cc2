# SPDX-License-Identifier: Apache-2.0
"""The public names, and what importing them costs."""

from __future__ import annotations

import doctest
import subprocess
import sys

import pinzk

NAMES = [
    *("BN254", "BLS12_381"),
    *("MemoryBudget", "PinnedPool", "PinnedBacking", "PinnedVec"),
    *("ProvingAssignment", "R1cs", "ProvingKey", "VerifyingKey", "Witness", "Proof"),
    *("Prover", "PendingProof", "prove_start", "verify"),
    *("msm", "Domain", "Device", "Stream"),
    *("PinzkError", "__version__"),
]


def test_public_names() -> None:
    assert pinzk.__all__ == NAMES
    assert all(getattr(pinzk, name) is not None for name in NAMES)


def test_public_names_have_docstrings() -> None:
    for name in NAMES:
        if name not in ("BN254", "BLS12_381", "__version__"):
            assert len(getattr(pinzk, name).__doc__) > 20, name


def test_docstring_examples() -> None:
    modules = {
        getattr(pinzk, name).__module__ for name in NAMES if hasattr(getattr(pinzk, name), "__module__")
    }
    results = [doctest.testmod(sys.modules[name]) for name in sorted(modules)]
    assert sum(r.attempted for r in results) >= 10
    assert sum(r.failed for r in results) == 0


def test_import_touches_no_gpu_and_no_thread() -> None:
    program = (
        "import sys, threading, pinzk; "
        "print(threading.active_count(), [m for m in sys.modules if m.split('.')[0] == 'py_ecc'], "
        "'libcuda' in open('/proc/self/maps').read())"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "1 [] False\n"
    assert done.stderr == ""
