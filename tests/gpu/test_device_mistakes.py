# SPDX-License-Identifier: Apache-2.0
"""The simulator reports what a GPU would punish, or punish only sometimes: kernels with one mistake each."""

from __future__ import annotations

import re

import numpy as np
import pytest
import simulator
from device_probe import download, load, upload

from pinzk._core.device import Device, DeviceVec, Stream, launch
from pinzk.errors import ContextLost, DeviceError

pytestmark = pytest.mark.skipif(not simulator.SIMULATED, reason="a mistake ends the use of a real GPU")


def run(name: str, device: Device, *args: object, block: int = 32, shared: int = 0) -> np.ndarray:
    """Launch a kernel of ``mistakes.cu`` on a vector of 64 words and the arguments."""
    stream = Stream(device)
    out = upload(np.zeros(64, np.uint32), device, stream)
    launch(load("mistakes", device).function(name), 1, block, (out, *args), shared=shared, stream=stream)
    return download(out, np.uint32, stream)


def mistake(name: str, device: Device, *args: object, block: int = 32, shared: int = 0) -> str:
    with pytest.raises(ContextLost, match="ILLEGAL_ADDRESS"):
        run(name, device, *args, block=block, shared=shared)
    said = simulator.fault()
    assert said is not None and said.startswith(f"{name}, ")
    assert simulator.fault() is None  # told once; the next test is not disturbed
    return said


def test_a_barrier_that_not_all_threads_reach(device: Device) -> None:
    said = mistake("barrier_of_some", device, block=64)
    assert re.search(
        r"63 of 64 threads wait for ever \(1 ended\): .* in __syncthreads at mistakes.cu:\d+", said
    )


def test_a_barrier_at_two_places(device: Device) -> None:
    said = mistake("barriers_apart", device)
    first, second = re.findall(r"thread (\d+) in __syncthreads at mistakes.cu:\d+", said)
    assert {int(first), int(second)} & {0, 16}


def test_a_lane_of_the_mask_that_does_not_come(device: Device) -> None:
    said = mistake("lane_missing", device)
    assert re.search(r"31 of 32 threads wait .* in __shfl_sync of lanes 0xffffffff at mistakes.cu:\d+", said)


def test_a_lane_outside_of_its_own_mask(device: Device) -> None:
    assert "a mask that does not have it" in mistake("lane_not_in_mask", device)


@pytest.mark.parametrize(
    ("i", "told"),
    [
        (64, r"0 bytes past the end of device memory of 256 bytes"),
        (1 << 18, r"\d+ bytes past the end of device memory of 256 bytes"),
        (-1, r"some thread: wrote 4 bytes before device memory of 256 bytes"),
        (-(1 << 18), r"\d+ bytes before device memory of 256 bytes"),
    ],
)
def test_a_write_outside_of_an_allocation(i: int, told: str, device: Device) -> None:
    assert re.search(told, mistake("write_at", device, i))


def test_a_read_past_the_end(device: Device) -> None:
    stream = Stream(device)
    v = upload(np.zeros(100, np.uint32), device, stream)
    said = mistake("read_at", device, v, 100 + 12)  # behind the last whole 32 bytes
    assert re.search(r"48 bytes past the end of device memory of 400 bytes at .*mistakes", said)


def test_freed_memory(device: Device) -> None:
    stream = Stream(device)
    v = DeviceVec("bytes", 4096, device)
    pointer = v.ptr
    stream.synchronize()
    v.release()
    device.settle(10)
    said = mistake("read_at", device, np.uint64(pointer), 3)
    assert "byte 12 of freed device memory of 4096" in said


def test_past_dynamic_shared_memory(device: Device) -> None:
    assert run("shared_at", device, 31, shared=128)[0] == 1
    assert "past the end of dynamic shared memory" in mistake("shared_at", device, 32, shared=128)


@pytest.mark.parametrize("i", [32, -1])
def test_an_index_out_of_range(i: int, device: Device) -> None:
    assert "index or alignment out of range" in mistake("index_at", device, i)


def test_a_misaligned_access(device: Device) -> None:
    assert run("misaligned", device, 2)[4] == 1
    assert "alignment" in mistake("misaligned", device, 1)


def test_too_many_threads_or_too_much_shared_memory(device: Device) -> None:
    assert run("bounded", device, block=64)[63] == 1
    for block, shared in ((65, 0), (1025, 0), (64, 228 << 10)):
        with pytest.raises(DeviceError):
            run("bounded", device, block=block, shared=shared)


def test_a_stack_that_overflows(device: Device) -> None:
    assert "past the end of a thread's stack" in mistake("deeper", device, 1 << 40, block=1)


def test_fresh_memory_is_no_zero(device: Device) -> None:
    v = DeviceVec("bytes", 128, device)
    assert run("unwritten", device, v, shared=128)[:3].tolist() == [0xA5A5A5A5] * 3


@pytest.mark.parametrize("waits", [True, False])
def test_a_stream_that_should_have_waited(waits: bool, device: Device) -> None:
    simulator.begin(1)  # late: nothing runs before somebody waits for it
    first, second = Stream(device), Stream(device)
    v, out = (upload(np.zeros(64, np.uint32), device, second) for _ in range(2))
    second.synchronize()
    launch(load("mistakes", device).function("write_at"), 1, 1, (v, 0), stream=first)
    if waits:
        second.wait(first.record())
    launch(load("mistakes", device).function("read_at"), 1, 1, (out, v, 0), stream=second)
    assert download(out, np.uint32, second)[0] == waits


# ---- races ----


@pytest.mark.parametrize(
    ("name", "block"), [("neighbours", 64), ("overwritten", 64), ("lanes", 32), ("same_word", 32)]
)
def test_a_race_between_threads(name: str, block: int, device: Device) -> None:
    run(name, device, 1, block=block, shared=256)
    said = mistake(name, device, 0, block=block, shared=256)
    assert re.search(r"a race: (reads|writes) byte \d+ of .* memory .* which thread \d+ (wrote|read)", said)
    assert re.search(r"\(.*mistakes.cu:\d+\)$", said)  # the line of the source


def test_lanes_that_did_not_meet(device: Device) -> None:
    assert run("half_lanes", device, 5)[:32].tolist() == [i ^ 5 for i in range(32)]
    assert "a race: " in mistake("half_lanes", device, 21)


def test_bytes_of_a_word_are_apart(device: Device) -> None:
    assert run("bytes", device, 1)[:9].tolist() == [0x01010101] * 8 + [0]
    assert "a race: writes byte" in mistake("bytes", device, 2)


def test_a_race_between_blocks(device: Device) -> None:
    for ordered in (1, 0):
        stream = Stream(device)
        out, parts, counter = (upload(np.zeros(256, np.uint32), device, stream) for _ in range(3))
        args = (out, parts, counter, ordered)
        if ordered:
            launch(load("mistakes", device).function("last_block"), 4, 64, args, stream=stream)
            assert download(out, np.uint32, stream)[0] == 256
            continue
        with pytest.raises(ContextLost):
            launch(load("mistakes", device).function("last_block"), 4, 64, args, stream=stream)
            stream.synchronize()
        assert re.search("a race: reads .*, which another block wrote", simulator.fault() or "")
