# SPDX-License-Identifier: Apache-2.0
"""Device selection on any machine: what each selector means, and who is told. With GPUs: `tests/fakecuda/test_select.py`."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from pinzk import backend
from pinzk.curves import BN254
from pinzk.errors import BackendUnavailable
from pinzk.stages.msm import msm
from pinzk.stages.ntt import Domain


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_said", set())
    monkeypatch.setattr(logging.getLogger("pinzk"), "propagate", True)  # the command line leaves it off
    backend._forget()
    monkeypatch.delenv("PINZK_DEVICE", raising=False)


def test_cpu_by_name_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "pinzk"):
        assert backend.select("cpu") == "cpu"
    assert not caplog.records


@pytest.mark.parametrize("device", ["cuda:77", "GPU-8c9a2f1e-0000-1111-2222-333344445555"])
def test_a_gpu_by_name_never_falls_back(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendUnavailable, match=f"^device asks for '{device}'"):
        backend.select(device)
    monkeypatch.setenv("PINZK_DEVICE", device)
    with pytest.raises(BackendUnavailable, match=f"^PINZK_DEVICE asks for '{device}'"):
        backend.select()


@pytest.mark.parametrize(
    "device",
    ["gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:00000", "CPU", "cuda:\uff11", "", " cpu", 0, None, b"cpu"],
)
def test_junk_is_an_error(device: object) -> None:
    with pytest.raises(ValueError if isinstance(device, str) else TypeError, match="device must be"):
        backend.select(device)  # type: ignore[arg-type]


def test_junk_in_the_environment_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINZK_DEVICE", "gpu")
    with pytest.raises(ValueError, match="PINZK_DEVICE must be"):
        backend.select()
    assert backend.select("cpu") == "cpu"  # the argument wins


def test_the_environment_stands_behind_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    first = backend.select()
    for value, chosen in (("cpu", "cpu"), (" cpu ", "cpu"), ("auto", first), ("", first)):
        monkeypatch.setenv("PINZK_DEVICE", value)
        assert backend.select() == chosen


def test_every_door_asks() -> None:
    empty = np.zeros((0, 8), np.uint64), np.zeros((0, 4), np.uint64)
    for call in (
        lambda device: Domain(BN254, 1, root="snarkjs", device=device),
        lambda device: msm(BN254.g1, *empty, device=device),
    ):
        with pytest.raises(ValueError, match="device must be"):
            call("gpu")
        with pytest.raises(BackendUnavailable):
            call("cuda:99")
