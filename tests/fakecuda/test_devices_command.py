# SPDX-License-Identifier: Apache-2.0
"""`pinzk devices` and `pinzk doctor` where there are GPUs, or a driver that has none."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from fake_cuda import Fake
from fake_process import run

from pinzk import backend, cli, kernels
from pinzk.errors import BackendUnavailable

MIB = 1 << 20


@pytest.fixture(autouse=True)
def fresh(fake: Fake) -> Iterator[None]:
    backend._forget()
    yield
    backend._forget()


def cubin(unit: kernels.Unit, origin: str) -> kernels.Cubin:
    return kernels.Cubin(unit, "sm_90", b"", "", "", "13.0", origin, 0.01)


def test_the_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fake: Fake) -> None:
    origins = {"ntt-bn254": "cache", "vec-bn254": "shipped"}

    def find(unit: kernels.Unit, sm: int) -> kernels.Cubin | None:
        return cubin(unit, origins[str(unit)]) if str(unit) in origins else None

    monkeypatch.setattr(kernels, "find", find)
    fake.make_current(3)
    assert cli.main(["devices"]) == 0
    assert fake.current() == fake.context(3)
    first, second = (block.splitlines() for block in capsys.readouterr().out.split("\n\n"))
    assert first[0].split(maxsplit=1) == ["cuda:0", "Fake 0"]
    assert second[0].split(maxsplit=1) == ["cuda:1", "Fake 1"]
    words = dict(line.split(maxsplit=1) for line in first)
    assert words["uuid"] == "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0"
    assert words["architecture"] == "sm_90, 132 multiprocessors"
    assert words["driver"] == "CUDA 13.0"
    assert words["usable"] == "yes"
    assert words["kernels"].endswith(" (run pinzk warmup)")
    for part in ("1 in the cache", "1 shipped", "to be compiled"):
        assert part in words["kernels"]

    assert cli.main(["devices", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["reason"] is None
    device = found["devices"][0]
    assert (device["sm"], device["memory_total"], device["usable"], device["why_not"]) == (
        90,
        16 * MIB,
        True,
        None,
    )
    assert 0 < device["memory_free"] <= 16 * MIB
    rows = {k["unit"]: (k["origin"], k["seconds"]) for k in device["kernels"]}
    assert rows["ntt-bn254"] == ("cache", 0.01)
    assert rows["ntt-bls12_381"] == ("to be compiled", None)
    assert set(rows) == {f"{n}-{c}" for n in kernels.NAMES for c in ("bn254", "bls12_381")}


def test_a_device_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fake: Fake
) -> None:
    def find(unit: kernels.Unit, sm: int) -> None:
        raise BackendUnavailable("the device is sm_70; pinzk needs sm_75 or newer")

    monkeypatch.setattr(kernels, "find", find)
    assert cli.main(["devices"]) == 0
    text = capsys.readouterr().out
    assert "no: the device is sm_70; pinzk needs sm_75 or newer" in text
    assert "not known free of not known" in text
    assert cli.main(["devices", "--json"]) == 0
    device = json.loads(capsys.readouterr().out)["devices"][1]
    assert (device["usable"], device["memory_free"], device["kernels"]) == (False, None, [])
    assert cli.main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cuda_driver"] == "CUDA 13.0"
    assert found["devices"][0].startswith("cuda:0 Fake 0, sm_90, cannot be used: the device is sm_70")
    assert found["backend"] == "cpu"


def test_one_that_fails_does_not_hide_the_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fake: Fake
) -> None:
    monkeypatch.setattr(kernels, "find", lambda unit, sm: None)
    fake.fail("cuStreamCreate", 1, 46)
    assert cli.main(["devices", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["devices"]
    assert "Another process holds the device" in first["why_not"]
    assert second["usable"]
    fake.fail("cuMemGetInfo", 1, 2)
    fake.fail("cuMemGetInfo_v2", 1, 2)
    assert cli.main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "cuMemGetInfo failed" in found["devices"][0]
    assert found["devices"][1].endswith("usable")
    assert found["backend"] == "cuda:0"


def test_without_devices_it_says_why() -> None:
    out = run(
        """
        from pinzk import cli
        FAKE.fail("cuInit", 1, 100, True)
        assert cli.main(["devices"]) == 0
        assert cli.main(["devices", "--json"]) == 0
        """
    ).splitlines()
    assert out[0].startswith("no devices: the CUDA driver cannot start: CUDA_ERROR_NO_DEVICE")
    found = json.loads(out[1])
    assert found["devices"] == []
    assert found["reason"] in out[0]
