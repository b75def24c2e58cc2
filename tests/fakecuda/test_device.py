# SPDX-License-Identifier: Apache-2.0
"""Devices, streams, vectors in device memory and launches: owners, order of frees, contexts, errors."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_cuda import FAKE, Fake

from pinzk import kernels
from pinzk._core.device import Device, DeviceVec, Module, Stream, launch
from pinzk._core.memory import PinnedPool, PinnedVec
from pinzk.curves import BN254
from pinzk.errors import (
    BackendUnavailable,
    BorrowError,
    BudgetExceeded,
    ContextLost,
    DeviceError,
    InFlightError,
    UseAfterMove,
    UseAfterRelease,
    WaitTimeout,
)

MIB = 1 << 20
FR = BN254.fr
Pools = Callable[..., PinnedPool]
WIDTHS = (8, 8, 4, 40, 1)
IMAGE = b"fake;ntt:8,8,4,40,1;nothing:"


@pytest.fixture
def device(fake: Fake) -> Iterator[Device]:
    """Device 0; afterwards its memory, its budget and the driver's streams are as before."""
    d = Device("cuda:0")
    Stream(d).close()  # context, pool and the stream of allocations are made once and kept
    gc.collect()
    before = fake.live_device(), d.budget.stats().used, fake.live_streams()
    yield d
    fake.reset()
    gc.collect()
    d.settle(5)
    # streams of the fixture `foreign` are the fake's own
    assert (fake.live_device(), d.budget.stats().used) == before[:2]
    assert fake.live_streams() == before[2] + MADE[0]
    MADE[0] = 0


MADE = [0]


@pytest.fixture
def stream(fake: Fake, device: Device) -> Iterator[Stream]:
    """A stream of pinzk's whose work is done when `advance(stream)` says so."""
    fake.manual()
    s = Stream(device)
    fake.manual(False)
    handle = s.handle
    yield s
    FAKE.advance_handle(handle)
    s.close()


def advance(s: Stream, steps: int = -1) -> None:
    FAKE.advance_handle(s.handle, steps)


def vector(p: PinnedPool, values: list[int]) -> PinnedVec:
    return PinnedVec.from_array(FR, FR.encode(values), pool=p)


# ---- devices ----


def test_the_devices_and_their_names(device: Device) -> None:
    devices = Device.all()
    assert [d.index for d in devices] == [0, 1]
    for spec in ("cuda", "cuda:0", 0, device, device.uuid, device.uuid.lower()):
        assert Device(spec) == device
    assert Device() == device
    assert {Device("cuda:1"), Device(1), device} == set(devices)
    assert device.uuid == "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0"
    assert (device.name, device.sm, device.multiprocessors) == ("Fake 0", 90, 132)
    assert device.budget is Device(0).budget is not Device(1).budget
    assert device.lock is Device(0).lock is not Device(1).lock
    assert device.budget.total == 15 * MIB


def test_a_device_that_is_not_there(device: Device) -> None:
    for spec in (2, "cuda:2", -1, "GPU-00000000-0000-0000-0000-000000000000"):
        with pytest.raises(BackendUnavailable, match="there are 2"):
            Device(spec)
    for wrong in ("cpu", "auto", "cuda:x", "cuda0"):
        with pytest.raises(ValueError, match="a device is"):
            Device(wrong)
    for other in (True, 1.0, None):
        with pytest.raises(TypeError):
            Device(other)  # type: ignore[arg-type]


def test_looking_at_devices_makes_no_context(fake: Fake) -> None:
    before = fake.retained(1)
    d = Device(1)
    assert d.name == "Fake 1"
    assert d.budget.stats().used == 0
    assert fake.retained(1) == before


# ---- copies ----


def test_parts_of_a_vector_go_up(device: Device, pool: Pools) -> None:
    p = pool()
    with (
        Stream(device) as s,
        DeviceVec(FR, 9, device) as d,
        vector(p, [1, 2, 3, 4]) as v,
        vector(p, [9]) as w,
    ):
        d.upload(v, s, first=1, count=2)
        d.upload(v, s, start=1, first=3)
        d.upload(v, s, start=2, first=4)
        d.upload(v, s, start=2, first=0, count=0)
        assert len(d) == 2
        d.download(w, s)
        s.synchronize()
        assert FR.decode(w.borrow().numpy()) == [2, 4]
        with pytest.raises(ValueError, match="no element 5 in a vector of 4"):
            d.upload(v, s, first=5)
        with pytest.raises(ValueError, match="no 3 elements from 2 in a vector of 4"):
            d.upload(v, s, first=2, count=3)
        for wrong in (-1, 1 << 70):
            with pytest.raises((ValueError, OverflowError)):
                d.upload(v, s, first=wrong)
            with pytest.raises((ValueError, OverflowError)):
                d.upload(v, s, count=wrong)


def test_up_and_down_again(device: Device, pool: Pools) -> None:
    p = pool()
    with Stream(device) as s, DeviceVec(FR, 100, device) as d, vector(p, [1, 2, 3]) as v, vector(p, [9]) as w:
        assert (len(d), d.capacity, d.nbytes) == (0, 100, 0)
        d.upload(v, s)
        d.upload(v, s, start=2)
        assert (len(d), d.nbytes) == (5, 160)
        d.truncate(4)
        d.download(w, s)
        s.synchronize()
        assert FR.decode(w.borrow().numpy()) == [1, 2, 1, 2]
        shape: dict[str, Any] = d.__cuda_array_interface__
        assert shape["shape"] == (4, 4)
        assert shape["typestr"] == "<u8"
        assert shape["data"] == (d.ptr, False)
        assert shape["stream"] == s.handle


def test_the_source_is_held_until_the_copy_is_complete(
    device: Device, stream: Stream, fake: Fake, pool: Pools
) -> None:
    p = pool(2 * MIB)
    v = PinnedVec("bytes", 2 * MIB, pool=p)
    v.extend(b"secret" * 1000)
    d = DeviceVec("bytes", 2 * MIB, device)
    d.upload(v, stream)
    assert v.in_flight
    assert bytes(v.borrow().numpy()[:6]) == b"secret"
    with pytest.raises(InFlightError):
        v.push(1)
    v.release()
    with pytest.raises(WaitTimeout):
        p.checkout(2 * MIB, timeout=0.02)
    advance(stream)
    with p.checkout(2 * MIB, timeout=5) as b:
        assert not b.borrow().numpy().any()
        gc.collect()
    back = PinnedVec("bytes", 0, pool=p)
    d.download(back, stream)
    with pytest.raises(InFlightError):
        back.borrow()
    advance(stream)
    assert bytes(back.borrow().numpy()) == b"secret" * 1000
    d.release()
    back.release()


def test_the_target_dropped_in_flight_is_not_reused(device: Device, stream: Stream, pool: Pools) -> None:
    p = pool(2 * MIB)
    d = DeviceVec("bytes", 2 * MIB, device)
    d.commit(2 * MIB)
    v = PinnedVec("bytes", 2 * MIB, pool=p)
    d.download(v, stream)
    del v
    gc.collect()
    with pytest.raises(WaitTimeout):
        p.checkout(2 * MIB, timeout=0.02)
    advance(stream)
    with p.checkout(2 * MIB, timeout=5) as b:
        assert not b.borrow().numpy().any(), "what the copy wrote after the release must be wiped"
        gc.collect()
    d.release()


def test_what_cannot_be_copied(device: Device, stream: Stream, pool: Pools) -> None:
    p = pool()
    d = DeviceVec(FR, 4, device)
    v = vector(p, [1, 2, 3])
    backing = v.into_backing()
    with pytest.raises(UseAfterMove):
        d.upload(v, stream)
    v = backing.into_vec(FR)
    v.release()
    for use in (d.upload, d.download):
        with pytest.raises(UseAfterRelease):
            use(v, stream)
    v = vector(p, [1, 2, 3])
    lease = v.borrow_mut()
    for use in (d.upload, d.download):
        with pytest.raises(BorrowError):
            use(v, stream)
    del lease
    lease = v.borrow()
    d.upload(v, stream)  # readers may go on
    with pytest.raises(BorrowError):
        d.download(v, stream)
    del lease
    advance(stream)
    for start in (2, 4, 5):
        with pytest.raises(ValueError, match="cannot put"):
            d.upload(v, stream, start=start)
    assert len(d) == 3
    for wrong in (np.zeros((3, 4), np.uint64), None):
        with pytest.raises(TypeError):
            d.upload(wrong, stream)  # type: ignore[arg-type]
    with PinnedVec(BN254.g1, 1, pool=p) as points, pytest.raises(TypeError, match="different elements"):
        d.upload(points, stream)
    with pytest.raises(ValueError, match="cannot commit"):
        d.commit(2)
    v.release()
    d.release()


def test_growth_of_the_target_that_cannot_be_changes_nothing(
    device: Device, stream: Stream, pool: Pools
) -> None:
    p = pool(1 * MIB)
    d = DeviceVec("bytes", 2 * MIB, device)
    d.commit(2 * MIB)
    v = PinnedVec("bytes", 8, pool=p)
    v.extend(b"as it was")
    with pytest.raises(BudgetExceeded):
        d.download(v, stream)
    assert bytes(v.borrow().numpy()) == b"as it was"
    gc.collect()
    v.release()
    d.release()


@pytest.mark.parametrize("call", ["cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"])
def test_a_copy_that_the_driver_refuses(device: Device, fake: Fake, pool: Pools, call: str) -> None:
    p = pool()
    with Stream(device) as s, DeviceVec(FR, 8, device) as d, vector(p, [1, 2]) as v, vector(p, [7]) as w:
        d.upload(v, s)
        fake.fail(call, 1, 1)
        with pytest.raises(DeviceError, match="INVALID_VALUE"):
            (d.upload if "HtoD" in call else d.download)(w, s)
        assert FR.decode(w.borrow().numpy()) == [7]
        assert len(d) == 2
        d.download(w, s)
        assert FR.decode(w.borrow().numpy()) == [1, 2]
        fake.fail(call, 1, 700)
        with pytest.raises(ContextLost, match="restart the process"):
            (d.upload if "HtoD" in call else d.download)(w, s)


def test_a_copy_that_cannot_be_followed_quarantines_the_block(
    device: Device, fake: Fake, pool: Pools
) -> None:
    p = pool()
    v = vector(p, [1])
    with Stream(device) as s, DeviceVec(FR, 8, device) as d:
        fake.fail("cuEventRecord", 1, 999)
        with pytest.raises(DeviceError):
            d.upload(v, s)
        v.release()
        p.settle(5)
        assert p.stats().quarantined > 0


# ---- device memory ----


def test_memory_is_freed_behind_its_uses_and_nobody_waits(
    device: Device, stream: Stream, fake: Fake, pool: Pools
) -> None:
    p = pool()
    v = vector(p, [1, 2, 3])
    base = fake.live_device()
    d = DeviceVec(FR, 3, device)
    d.upload(v, stream)
    waits = fake.calls("cuEventSynchronize"), fake.calls("cuStreamSynchronize")
    d.release()
    assert (fake.calls("cuEventSynchronize"), fake.calls("cuStreamSynchronize")) == waits
    assert fake.live_device() == base + 96
    assert device.budget.stats().by_tag == {"bn254.fr": 96}
    with pytest.raises(WaitTimeout):
        device.settle(0.01)
    advance(stream)
    device.settle(5)
    assert fake.live_device() == base
    assert device.budget.stats().used == 0
    for use in (d.release, d.__enter__, lambda: d.ptr, lambda: len(d), lambda: d.upload(v, stream)):
        with pytest.raises(UseAfterRelease):
            use()
    v.release()


def test_garbage_is_freed_behind_its_uses(device: Device, stream: Stream, fake: Fake, pool: Pools) -> None:
    p = pool()
    v = vector(p, [1, 2, 3])
    base = fake.live_device()
    d = DeviceVec(FR, 3, device)
    d.upload(v, stream)
    cycle: list[object] = [d]
    cycle.append(cycle)
    del d, cycle
    gc.collect()
    assert fake.live_device() == base + 96
    with pytest.raises(WaitTimeout):
        device.settle(0.01)
    assert fake.live_device() == base + 96
    advance(stream)
    device.settle(5)
    assert fake.live_device() == base
    v.release()


def test_memory_outlives_the_closed_stream_that_uses_it(
    device: Device, stream: Stream, fake: Fake, pool: Pools
) -> None:
    p = pool()
    v, d = vector(p, [5]), DeviceVec(FR, 1, device)
    d.upload(v, stream)
    handle = stream.handle
    stream.close()
    stream.close()
    for use in (stream.synchronize, stream.record, lambda: stream.handle, lambda: d.upload(v, stream)):
        with pytest.raises(UseAfterRelease):
            use()
    d.release()
    with pytest.raises(WaitTimeout):
        device.settle(0.01)
    FAKE.advance_handle(handle)
    device.settle(5)
    v.release()


def test_the_budget_adds_up_and_waits_only_for_what_was_released(
    device: Device, stream: Stream, fake: Fake, pool: Pools
) -> None:
    p = pool()
    first, second = DeviceVec("bytes", 8 * MIB, device), DeviceVec(FR, 1000, device)
    stats = device.budget.stats()
    assert stats.by_tag == {"bytes": 8 * MIB, "bn254.fr": 32000}
    assert stats.used == fake.live_device()
    with pytest.raises(BudgetExceeded, match="does not fit on the device"):
        DeviceVec("bytes", 8 * MIB, device)
    with pytest.raises(BudgetExceeded, match="more than the whole budget"):
        DeviceVec("bytes", 80 * MIB, device)
    v = PinnedVec.from_array("bytes", b"abc", pool=p)
    first.upload(v, stream)
    first.release()
    later = threading.Timer(0.05, advance, (stream,))
    later.start()
    with DeviceVec("bytes", 8 * MIB, device) as third:  # waits for the copy
        later.join()
        assert third.ptr
    second.release()
    v.release()


def test_reserving_from_the_budget_sees_what_was_released(
    device: Device, stream: Stream, pool: Pools
) -> None:
    p = pool()
    d, v = DeviceVec("bytes", 10 * MIB, device), PinnedVec.from_array("bytes", b"abc", pool=p)
    d.upload(v, stream)
    d.release()
    advance(stream)
    device.budget.reserve(10 * MIB, "test", timeout=0).release()
    v.release()


def test_a_vector_of_nothing(device: Device, pool: Pools) -> None:
    p = pool()
    with Stream(device) as s, DeviceVec(FR, 0, device) as d, vector(p, [1]) as v, vector(p, []) as empty:
        assert (d.ptr, d.nbytes, len(d)) == (0, 0, 0)
        d.upload(empty, s)
        d.download(v, s)
        assert len(v) == 0


@pytest.mark.parametrize("call", ["cuMemAllocFromPoolAsync", "cuStreamSynchronize"])
def test_an_allocation_that_the_driver_refuses(device: Device, fake: Fake, call: str) -> None:
    fake.fail(call, 1, 2)
    with pytest.raises(DeviceError, match="OUT_OF_MEMORY"):
        DeviceVec("bytes", MIB, device)
    gc.collect()
    device.settle(5)
    assert device.budget.stats().used == 0


def test_a_use_that_cannot_be_followed_leaks_and_is_counted(fake: Fake, pool: Pools) -> None:
    d, p = Device(1), pool()
    base, used = fake.live_device(), d.budget.stats().used
    with Stream(d) as s:
        for failing in ("cuEventQuery", "cuEventCreate"):
            v, x = vector(p, [1]), DeviceVec(FR, 1, d)
            x.upload(v, s)
            fake.fail(failing, 1, 700, all_later=True)
            x.release()  # never raises, never frees what may be in use
            d.settle(5)
            fake.fail(failing, 0)
            v.release()
    used += 64
    assert (fake.live_device(), d.budget.stats().used) == (base + 64, used)


def test_threads_share_a_device(device: Device, pool: Pools) -> None:
    """Eight threads in a budget for five vectors: what is released serves the others, and all of it comes home."""
    p, failures = pool(), []
    function = Module(device, b"fake;f:8").function("f")

    def work(i: int) -> None:
        try:
            with Stream(device) as s, PinnedVec.from_array("bytes", bytes([i]) * 4096, pool=p) as v:
                for _ in range(100):
                    try:
                        d = DeviceVec("bytes", 3 * MIB, device)
                    except BudgetExceeded:  # the others own it all
                        continue
                    d.upload(v, s)
                    launch(function, 1, 1, [d], shared=1024 * i, stream=s)
                    with PinnedVec("bytes", pool=p) as w:
                        d.download(w, s)
                        s.synchronize()
                        assert bytes(w.borrow().numpy()) == bytes([i]) * 4096
                    d.release()
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert failures == []
    device.settle(5)
    assert device.budget.stats().used == 0
    assert 3 * MIB <= device.budget.stats().peak <= 15 * MIB


# ---- streams, events, contexts ----


def test_events_tell_order_and_time(device: Device, stream: Stream, fake: Fake) -> None:
    start = stream.record()
    end = stream.record()
    assert not start.done()
    advance(stream, 1)
    assert start.done()
    assert not end.done()
    with pytest.raises(DeviceError):
        end.elapsed_ms(start)
    advance(stream)
    end.synchronize()
    assert end.elapsed_ms(start) == 1.0
    with Stream(device) as other:
        other.wait(end)
        assert fake.waited(other.handle) == 1


def test_foreign_streams(device: Device, fake: Fake, pool: Pools) -> None:
    p = pool()
    foreign, elsewhere = fake.stream(0), fake.stream(1)
    MADE[0] = 2
    v, d = vector(p, [4]), DeviceVec(FR, 1, device)
    for bad in (elsewhere, elsewhere.handle, Stream(Device(1))):
        with pytest.raises(ValueError, match="belongs to"):
            d.upload(v, bad)
    for wrong in ("0", None, True):
        with pytest.raises(TypeError):
            d.upload(v, wrong)
    foreign.capture(True)
    with pytest.raises(DeviceError, match="outside the capture"):
        d.upload(v, foreign)
    foreign.capture(False)
    assert not v.in_flight
    d.upload(v, foreign)
    s = Stream(device, foreign.handle)
    s.wait(s.record())
    s.close()  # not ours to destroy
    d.release()
    with pytest.raises(WaitTimeout):
        device.settle(0.01)
    foreign.advance()
    device.settle(5)
    v.release()


def test_the_callers_context_is_left_as_found(device: Device, fake: Fake, pool: Pools) -> None:
    p = pool()
    for current in (None, 1, 2):
        fake.make_current(current)
        found = fake.current()
        with Stream(device) as s, DeviceVec(FR, 4, device) as d, vector(p, [1]) as v:
            d.upload(v, s)
            d.download(v, s)
            s.synchronize()
            s.wait(s.record())
            launch(Module(device, IMAGE).function("nothing"), 1, 1, (), stream=s)
            for call in ("cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"):
                fake.fail(call, 1, 1)
                with pytest.raises(DeviceError):
                    (d.upload if "HtoD" in call else d.download)(v, s)
        device.settle(5)
        assert fake.current() == found


# ---- launches ----


def test_a_launch_passes_each_argument_in_its_width(device: Device, fake: Fake) -> None:
    function = Module(device, IMAGE).function("ntt")
    assert function.widths == WIDTHS
    with Stream(device) as s, DeviceVec(FR, 8, device) as d:
        struct = bytes(range(40))
        launch(function, (7, 2), 128, (d, (d, 3), np.uint32(5), struct, 200), shared=4096, stream=s)
        name, sizes, stream, arguments = fake.launched(WIDTHS)
        assert (name, sizes, stream) == ("ntt", [7, 2, 1, 128, 1, 1, 4096], s.handle)
        assert [int.from_bytes(a, "little") for a in arguments[:3]] == [d.ptr, d.ptr + 96, 5]
        assert arguments[3:] == [struct, bytes([200])]
        launch(function, 1, 1, (2**64 - 1, -1, -2, struct, np.int8(-1)), stream=s)
        arguments = fake.launched(WIDTHS)[3]
        assert arguments[:3] == [b"\xff" * 8, b"\xff" * 8, b"\xfe\xff\xff\xff"]
        assert arguments[4] == b"\xff"


def test_arguments_that_do_not_fit_are_refused_before_the_launch(device: Device, fake: Fake) -> None:
    function = Module(device, IMAGE).function("ntt")
    good: tuple[Any, ...] = (0, 0, 0, bytes(40), 0)
    launches = fake.calls("cuLaunchKernel")
    gone = DeviceVec(FR, 1, device)
    gone.release()
    with Stream(device) as s, DeviceVec(FR, 8, Device(1)) as other, DeviceVec(FR, 2, device) as d:
        for i, x, error in (
            (2, np.uint64(1), TypeError),
            (2, 1 << 32, OverflowError),
            (2, d, TypeError),
            (4, 256, OverflowError),
            (0, 1.0, TypeError),
            (0, True, TypeError),
            (0, None, TypeError),
            (3, 1, TypeError),
            (3, bytes(39), TypeError),
            (0, other, ValueError),
            (0, (d, 3), ValueError),
            (0, (d, -1), ValueError),
            (0, gone, UseAfterRelease),
        ):
            with pytest.raises(error):
                launch(function, 1, 1, (*good[:i], x, *good[i + 1 :]), stream=s)
        for count in (0, 4, 6):
            with pytest.raises(TypeError, match="takes 5 arguments"):
                launch(function, 1, 1, (0,) * count, stream=s)
        for grid in (0, (1, 0), -1, (), (1, 1, 1, 1)):
            with pytest.raises(ValueError, match="grid"):
                launch(function, grid, 1, good, stream=s)
        with pytest.raises(TypeError):
            launch(function, 1.5, 1, good, stream=s)  # type: ignore[arg-type]
    assert fake.calls("cuLaunchKernel") == launches


def test_a_launch_that_the_driver_refuses(device: Device, fake: Fake) -> None:
    function = Module(device, IMAGE).function("nothing")
    with Stream(device) as s:
        with pytest.raises(DeviceError, match=r"cuLaunchKernel\(nothing\).*INVALID_VALUE"):
            launch(function, 1, 2048, (), stream=s)
        with pytest.raises(DeviceError, match="bytes of shared memory"):
            launch(function, 1, 1, (), shared=1 << 20, stream=s)
        fake.fail("cuLaunchKernel", 1, 700)
        with pytest.raises(ContextLost) as e:
            launch(function, 1, 1, (), stream=s)
        assert e.value.code == 700


def test_a_vector_released_after_a_launch_is_freed_behind_the_kernel(
    device: Device, stream: Stream, fake: Fake
) -> None:
    function = Module(device, b"fake;f:8").function("f")
    base = fake.live_device()
    d = DeviceVec(FR, 1, device)
    launch(function, 1, 1, [d], stream=stream)
    d.release()
    with pytest.raises(WaitTimeout):
        device.settle(0.01)
    assert fake.live_device() == base + 32
    advance(stream)
    device.settle(5)
    assert fake.live_device() == base


def test_a_vector_in_a_call_on_another_thread_cannot_be_released(device: Device, fake: Fake) -> None:
    function = Module(device, b"fake;f:8").function("f")
    with Stream(device) as s:
        d = DeviceVec(FR, 1, device)
        fake.block("cuLaunchKernel")
        t = threading.Thread(target=launch, args=(function, 1, 1, [d]), kwargs={"stream": s})
        t.start()
        fake.wait_blocked("cuLaunchKernel")
        for refused in (d.release, s.close):
            with pytest.raises(BorrowError):
                refused()
        fake.block("cuLaunchKernel", False)
        t.join()
        d.release()


def test_modules(device: Device, fake: Fake) -> None:
    module = Module(device, IMAGE)
    assert module.function("ntt") is module.function("ntt")
    with pytest.raises(DeviceError, match="no kernel 'absent'"):
        module.function("absent")
    for image in (b"something else", b""):
        with pytest.raises((DeviceError, ValueError)):
            Module(device, image)
    loads = fake.calls("cuFuncLoad")
    with Stream(device) as s:
        launch(module.function("ntt"), 1, 1, (0, 0, 0, bytes(40), 0), stream=s)
    assert fake.calls("cuFuncLoad") == loads, "a kernel is loaded before its first launch"


def test_a_unit_of_kernels_is_loaded_once(
    device: Device, fake: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    monkeypatch.setenv("PINZK_CACHE_DIR", str(tmp_path))
    compile_it = "from pinzk import kernels; kernels.build(kernels.Unit('vec', 'toy'), 90)"
    # elsewhere: NVRTC looks at libcuda too, and the fake one is none for it
    clean = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    subprocess.run([sys.executable, "-P", "-c", compile_it], env=clean, check=True)
    unit = kernels.Unit("vec", "toy")
    assert kernels.build(unit, 90).origin in ("cache", "shipped")
    loads = fake.calls("cuModuleLoadData")
    module = kernels.load(unit, device)
    assert module.device == device
    assert kernels.load(unit, Device(0)) is module
    assert fake.calls("cuModuleLoadData") == loads + 1
