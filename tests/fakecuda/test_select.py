# SPDX-License-Identifier: Apache-2.0
"""Device selection where there are GPUs, some of them unusable: what is taken, what is said, what is touched."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from fake_cuda import Fake
from fake_process import run

from pinzk import backend, kernels
from pinzk._core.device import Device
from pinzk.errors import BackendUnavailable, DeviceError


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, fake: Fake) -> Iterator[None]:
    monkeypatch.setattr(backend, "_said", set())
    monkeypatch.setattr(logging.getLogger("pinzk"), "propagate", True)  # the command line leaves it off
    monkeypatch.delenv("PINZK_DEVICE", raising=False)
    monkeypatch.setattr(kernels, "find", lambda unit, sm: None)  # with a compiler at hand
    backend._forget()
    yield
    backend._forget()


def test_auto_is_the_first_device(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "pinzk"):
        assert backend.select() == Device(0)
        assert backend.select("auto") == Device(0)
    assert not caplog.records


def test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    uuid = Device(1).uuid
    for name in ("cuda:1", uuid, uuid.upper().replace("GPU", "GPU"), Device(1)):
        found = backend.select(name)
        assert found == Device(1)
        assert backend.select(found) is found or backend.select(found) == found
        assert backend.name_of(found) == "cuda:1"
    assert backend.select("cuda") == Device(0)
    monkeypatch.setenv("PINZK_DEVICE", uuid)
    assert backend.select() == Device(1)
    assert backend.select("cuda:0") == Device(0)  # the argument wins
    assert backend.select("cpu") == "cpu"
    assert backend.name_of("cpu") == "cpu"
    assert backend.SELECTORS.fullmatch(uuid)


def test_what_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cuda:2", "cuda:9999", "GPU-00000000-0000-0000-0000-000000000000"):
        with pytest.raises(BackendUnavailable, match=f"device asks for '{name}': no device .* there are 2"):
            backend.select(name)
    monkeypatch.setenv("PINZK_DEVICE", "cuda:2")
    with pytest.raises(BackendUnavailable, match="PINZK_DEVICE asks for 'cuda:2'"):
        backend.select()


def test_a_device_that_another_process_holds(fake: Fake, caplog: pytest.LogCaptureFixture) -> None:
    """The first one is passed over by auto, and refused by name."""
    fake.fail("cuStreamCreate", 1, 46)
    with caplog.at_level(logging.INFO, "pinzk"):
        assert backend.select() == Device(1)
    fake.fail("cuStreamCreate", 1, 46)
    with pytest.raises(DeviceError, match="Another process holds the device"):
        backend.select("cuda:0")
    assert backend.select("cuda:0") == Device(0)  # it was given back: asked again
    assert not caplog.records


def test_auto_says_for_each_device_why_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fake: Fake
) -> None:
    asked = []

    def find(unit: kernels.Unit, sm: int) -> None:
        asked.append(sm)
        raise BackendUnavailable("kernels have to be compiled and NVRTC is not installed")

    monkeypatch.setattr(kernels, "find", find)
    calls = fake.calls("cuStreamCreate")
    with caplog.at_level(logging.INFO, "pinzk"):
        assert [backend.select() for _ in range(3)] == ["cpu"] * 3
    assert asked == [90, 90]  # looked at once
    assert fake.calls("cuStreamCreate") == calls  # and no context was made for nothing
    (record,) = caplog.records
    reason = "kernels have to be compiled and NVRTC is not installed"
    assert record.message == f"device auto: using the CPU: cuda:0 {reason}; cuda:1 {reason}"
    with pytest.raises(BackendUnavailable, match=f"device asks for 'cuda:1': {reason}"):
        backend.select("cuda:1")


CHILD = """
import logging
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
from pinzk import Domain, Prover, backend, kernels
from pinzk._core.device import Device, Stream
kernels.find = lambda unit, sm: None
def child(f):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            f()
            sys.stdout.flush()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
def refused(f):
    try:
        f()
    except ForkError:
        return
    raise AssertionError("no ForkError")
"""


def test_a_child_of_a_fork_has_a_working_cpu() -> None:
    out = run(
        CHILD
        + """
device = backend.select()
assert device == Device(0)
def uses():
    before = FAKE.calls()
    assert backend.select() == "cpu"
    assert Domain(BN254, 3, root="snarkjs").device == "cpu"
    for name in ("cuda", "cuda:1", device):
        refused(lambda: backend.select(name))
    assert FAKE.calls() == before
child(uses)
assert backend.select() == device
"""
    )
    (line,) = out.splitlines()
    assert line.startswith("device auto: using the CPU: CUDA was initialised before a fork")


def test_a_fork_before_any_gpu_was_touched_costs_nothing() -> None:
    assert run(CHILD + "child(lambda: print(backend.name_of(backend.select('cuda:1'))))") == "cuda:1\n"


@pytest.mark.parametrize(
    ("code", "words"),
    [(100, "CUDA_ERROR_NO_DEVICE"), (999, "the CUDA driver cannot start"), (35, "Update the NVIDIA driver")],
)
def test_a_driver_that_does_not_start(code: int, words: str) -> None:
    out = run(
        CHILD
        + f"""
FAKE.fail("cuInit", 1, {code}, True)
print(backend.select(), backend.select())
try:
    backend.select("cuda")
except BackendUnavailable as error:
    assert error.code == {code}
    print(error)
"""
    ).splitlines()
    assert out[1] == "cpu cpu"
    assert out[0].startswith("device auto: using the CPU: the CUDA driver cannot start")
    assert out[2].startswith("device asks for 'cuda': the CUDA driver cannot start")
    assert words in out[0]
    assert words in out[2]
