# SPDX-License-Identifier: Apache-2.0
"""Starts the tests of `tests/fakecuda`, each file in a process whose libcuda.so.1 is the fake one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from cases import ROOT

FOLDER = ROOT / "tests" / "fakecuda"


@pytest.fixture(scope="session")
def libcuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the fake driver."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        compiler = "cc"
    folder = tmp_path_factory.mktemp("fakecuda")
    command = [
        compiler,
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O1",
        "-g",
        "-shared",
        "-fPIC",
        "-pthread",
    ]
    command += ["-Wl,-soname,libcuda.so.1", "-o", str(folder / "libcuda.so.1"), str(FOLDER / "fakecuda.c")]
    subprocess.run([*command, "-ldl"], check=True)
    return folder


@pytest.mark.parametrize("path", sorted(FOLDER.glob("test_*.py")), ids=lambda p: p.stem)
def test_on_the_fake_driver(path: Path, libcuda: Path) -> None:
    environment = {**os.environ, "PINZK_FAKE_CUDA": str(libcuda), "LD_LIBRARY_PATH": str(libcuda)}
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
