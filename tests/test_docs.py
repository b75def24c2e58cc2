# SPDX-License-Identifier: Apache-2.0
"""What the documents say is so: the example runs, the files they name are there, the commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from cases import DATA, ROOT

from pinzk.cli import COMMANDS

DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "tests" / "data").glob("*.md")]
)


def test_python_example_of_the_readme_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert blocks
    for block in blocks:
        done = subprocess.run(
            [sys.executable, "-P", "-c", block], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        public = (DATA / "semaphore4_depth1_bn254" / "public.json").read_text()
        assert re.findall(r"\d+", done.stdout.splitlines()[0]) == re.findall(r"\d+", public)


def test_example_of_a_downstream_prover_runs(tmp_path: Path) -> None:
    program = ROOT / "examples" / "downstream.py"
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "a, b, c are home: True" in done.stdout and str(7**4) in done.stdout


def test_example_of_make_prove_runs(tmp_path: Path) -> None:
    program = ROOT / "examples" / "prove.py"
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "build" / "prove" / "proof.json").exists()
    assert done.stderr == ""


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_and_files_are_there(path: Path) -> None:
    text = path.read_text()
    links = [t for t in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if not t.startswith("http")]
    assert [t for t in links if not (path.parent / t).exists()] == []
    named = re.findall(r"`((?:tests|docs|examples|benchmarks|cuda|pinzk)/[\w/.]+\.\w+)`", text)
    assert [n for n in named if not (ROOT / n).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_exist(path: Path) -> None:
    words = {" ".join(w) for w in COMMANDS}
    for line in re.findall(r"^ +pinzk ([a-z-]+(?: [a-z][a-z-]+)?)", path.read_text(), re.M):
        assert line in words or line.split()[0] in words, line


def test_every_command_is_documented() -> None:
    text = (ROOT / "docs" / "cli.md").read_text()
    assert [w for w in map(" ".join, COMMANDS) if f"pinzk {w}" not in text] == []
