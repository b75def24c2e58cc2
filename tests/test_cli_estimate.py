# SPDX-License-Identifier: Apache-2.0
"""`pinzk estimate`, sizes on the command line, and which device one proof takes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
from cases import DATA

from pinzk import cli, cli_prove
from pinzk.cli_arguments import byte_count
from pinzk.groth16.keys import ProvingKey
from pinzk.groth16.prover import Prover

CASE = DATA / "mult3_bn254"


@pytest.mark.parametrize(
    ("text", "n"),
    [("1", 1), ("7B", 7), ("3KiB", 3 << 10), ("2MiB", 2 << 20), ("4GiB", 4 << 30), ("1TiB", 1 << 40)],
)
def test_sizes_are_bytes_or_have_a_unit(text: str, n: int) -> None:
    assert byte_count(text) == n


@pytest.mark.parametrize("text", ["", "0", "0GiB", "-1", "1.5GiB", "4GB", "4 GiB", "GiB", "\u0661"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="must be bytes"):
        byte_count(text)


def test_the_plan_of_a_key_within_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["estimate", str(CASE / "circuit.zkey"), "--max-vram", "4GiB", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert 0 < plan["device"] <= 4 << 30
    assert plan["device"] == plan["device_key"] + plan["device_scratch"] + plan["device_proof"]
    assert plan["host"] == ProvingKey.load(CASE / "circuit.zkey").sizes["nbytes"]
    assert plan["witness_windows"]["multiples"] >= 1
    assert cli.main(["estimate", str(CASE / "circuit.zkey"), "--max-vram", "4GiB"]) == 0
    assert "device memory" in capsys.readouterr().out


def test_the_plan_on_the_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["estimate", str(CASE / "circuit.zkey"), "--device", "cpu"]) == 0
    assert "host memory of the key" in capsys.readouterr().out


def test_a_key_that_does_not_fit_ends_with_8_and_the_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["estimate", str(CASE / "circuit.zkey"), "--max-vram", "1MiB"]) == 8
    error = capsys.readouterr().err
    assert "needs at least" in error and "1 MiB may be used" in error


class Stop(Exception):
    """The prover was asked for."""


@pytest.mark.parametrize(
    ("variable", "arguments", "worth", "device"),
    [
        ("", [], 1 << 20, "cpu"),
        ("", [], 1, "auto"),
        ("", ["--device", "cpu"], 1, "cpu"),
        ("cpu", [], 1, "auto"),  # the prover asks the variable
    ],
)
def test_one_proof_takes_a_gpu_where_it_is_worth_it(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variable: str,
    arguments: list[str],
    worth: int,
    device: str,
) -> None:
    asked = []

    def prover(self: Prover, key: Any, **options: Any) -> None:
        asked.append(options["device"])
        raise Stop

    monkeypatch.setenv("PINZK_DEVICE", variable)
    monkeypatch.setattr(cli_prove, "WORTH_A_GPU", worth)
    monkeypatch.setattr(Prover, "__init__", prover)
    files = [str(CASE / "circuit.zkey"), str(CASE / "witness.wtns"), *(str(tmp_path / n) for n in ("a", "b"))]
    assert cli.main(["prove", *files, *arguments]) == cli.INTERNAL
    assert asked == [device]
