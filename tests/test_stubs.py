# SPDX-License-Identifier: Apache-2.0
"""Each Cython module has a stub beside it, and the stub tells the truth about the compiled module (mypy's stubtest)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cases import ROOT

MODULES = sorted(p.relative_to(ROOT).with_suffix("") for p in (ROOT / "pinzk").rglob("*.pyx"))


@pytest.mark.parametrize("module", MODULES, ids=lambda p: ".".join(p.parts))
def test_stub_agrees_with_the_compiled_module(module: Path, tmp_path: Path) -> None:
    assert (ROOT / module.with_suffix(".pyi")).exists(), f"{module}.pyx has no stub {module.name}.pyi"
    allowed = tmp_path / "allowlist"
    allowed.write_text(
        r".*\.__test__"
        + "\n"
        + r".*\.__reduce_cython__"
        + "\n"
        + r".*\.__setstate_cython__"
        + "\n"
        + r".*\.__pyx_capi__"
        + "\n"
    )
    command = [sys.executable, "-P", "-m", "mypy.stubtest", "--concise", "--ignore-unused-allowlist"]
    command += ["--mypy-config-file", str(ROOT / "pyproject.toml")]  # which libraries have no types
    command += ["--allowlist", str(allowed), ".".join(module.parts)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
