# SPDX-License-Identifier: Apache-2.0
"""`pinzk warmup`: kernels into the cache, for GPUs that are here or not."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from pinzk import cli, cli_warmup, kernels

try:
    version("nvidia-cuda-nvrtc")
except PackageNotFoundError:
    pytest.skip("the wheel nvidia-cuda-nvrtc is not installed", allow_module_level=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cache of its own; the unit that compiles in a second."""
    monkeypatch.setenv("PINZK_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernels, "NAMES", ("vec",))
    monkeypatch.setattr(kernels, "_process_builder", None)


def test_kernels_are_in_the_cache_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["warmup", "--curve", "bn128", "--arch", "sm_80", "--arch", "90", "-v"]
    assert cli.main(command) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0].startswith("vec-bn254 sm_80: compiled, ")
    assert said.splitlines()[1].startswith("vec-bn254 sm_90: compiled, ")
    assert "registers" in said
    assert "vec_mul_sub" in said
    assert len(list((tmp_path / "kernels").iterdir())) == 2
    monkeypatch.setattr(kernels, "_process_builder", None)  # a new process finds them
    assert cli.main([*command[:-1], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["kernels"]
    assert [(k["unit"], k["arch"], k["origin"]) for k in found] == [
        ("vec-bn254", "sm_80", "cache"),
        ("vec-bn254", "sm_90", "cache"),
    ]
    assert found[0]["usage"]["vec_mul"]["spill_stores"] == 0
    assert cli.main(["doctor"]) == 0
    assert "0 with pinzk, 2 in the cache" in capsys.readouterr().out


def test_the_gpus_that_are_here_are_the_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli_warmup, "architectures", lambda: [90, 90])
    assert cli.main(["warmup"]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "vec-bls12_381 sm_90",
        "vec-bn254 sm_90",
    ]


def test_without_a_gpu_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli_warmup, "architectures", list)
    assert cli.main(["warmup"]) == 3
    assert "name one with --arch, such as --arch sm_90" in capsys.readouterr().err
    assert cli.main(["warmup", "--arch", "sm_70"]) == 3
    assert "pinzk needs sm_75 or newer" in capsys.readouterr().err
    for junk in ("sm_", "sm_9", "ninety", "sm_90a", "\uff19\uff10"):
        assert cli.main(["warmup", "--arch", junk]) == 2
        assert "is no architecture" in capsys.readouterr().err
