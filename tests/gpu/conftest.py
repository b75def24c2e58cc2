# SPDX-License-Identifier: Apache-2.0
"""Set-up of the tests of kernels: on the GPU where there is one, else on the simulator, in a process of its own.

A process has one driver, and the other tests want it to be absent. So where there is no GPU each test is handed over to a
second pytest whose driver is the fake one. With ``PINZK_SIMULATOR=1`` this process itself runs on the simulator (for ``-s``,
``--pdb``, gdb). `tests/simt/README.md`.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import relay
import simulator

from pinzk._core.device import Device

INSIDE = bool(os.environ.get("PINZK_SIMULATOR"))
if INSIDE:
    simulator.install()


def pytest_configure(config: pytest.Config) -> None:
    if relay.VARIABLE in os.environ:
        config.pluginmanager.register(relay.Inside(config))
    elif simulator.SIMULATED and not INSIDE:
        here = Path(__file__).resolve().parent
        config.pluginmanager.register(relay.Outside(config, here, {"PINZK_SIMULATOR": "1"}))


@pytest.fixture(scope="session")
def device() -> Device:
    """The GPU, or the simulated one."""
    return Device("cuda")


@pytest.fixture(autouse=True)
def sound_kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Simulated kernels run in an order of the test's own, and do nothing that a GPU would punish, or only sometimes."""
    if not INSIDE:
        yield
        return
    seed = int(os.environ.get("PINZK_SIMULATOR_SEED") or zlib.crc32(request.node.nodeid.encode()) % 1000)
    simulator.begin(seed if seed > 9 else seed % 3)
    yield
    if wrong := simulator.fault():
        pytest.fail(f"{wrong} (PINZK_SIMULATOR_SEED={seed})", pytrace=False)
