# SPDX-License-Identifier: Apache-2.0
"""`Domain` on a GPU: every size, direction, shift and batch equals the CPU backend; every kind of array answered in kind."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import simulator

from pinzk import BLS12_381, BN254, Domain
from pinzk._core.device import Device, DeviceVec, Stream
from pinzk._core.memory import MemoryBudget, PinnedPool, PinnedVec
from pinzk.curves import Curve, Words
from pinzk.errors import BudgetExceeded, ForkError, UseAfterRelease

KINDS = [(BN254, "snarkjs"), (BLS12_381, "snarkjs"), (BLS12_381, "bellman")]
SIZES = range(12 if simulator.SIMULATED else 21)
POISON = 0xDEADBEEFDEADBEEF


def rows(curve: Curve, n: int, *batch: int) -> Words:
    """Full-size values, with 0, 1, r - 1 among them."""
    draw = np.random.default_rng(n + sum(batch))
    out = draw.integers(0, 1 << 64, size=(*batch, n, 4), dtype=np.uint64)
    out[..., 3] &= np.uint64((1 << (curve.fr.modulus.bit_length() - 193)) - 1)
    edges = curve.fr.encode_canonical([0, 1, curve.fr.modulus - 1])
    flat = out.reshape(-1, 4)
    for i in range(0, len(flat), 7):
        flat[i] = edges[i % 3]
    return out


def poison(device: Device, nbytes: int) -> None:
    """Leave memory of that size behind whose every word is POISON: what the next vector is given."""
    stream = Stream(device)
    with DeviceVec("bytes", nbytes, device) as v, PinnedVec("bytes", nbytes) as pinned:
        pinned.extend(np.full(nbytes // 8, POISON, np.uint64))
        v.upload(pinned, stream)
        stream.synchronize()


def on_device(curve: Curve, array: Words, device: Device) -> DeviceVec:
    stream = Stream(device)
    v = DeviceVec(curve.fr, array.size // 4, device)
    with PinnedVec.from_array(curve.fr, array.reshape(-1, 4)) as pinned:
        v.upload(pinned, stream)
        stream.synchronize()
    return v


def on_host(curve: Curve, v: DeviceVec) -> Words:
    stream = Stream(v.device)
    with PinnedVec(curve.fr, len(v)) as pinned:
        v.download(pinned, stream)
        stream.synchronize()
        return np.array(pinned.borrow().numpy())


class Foreign:
    """An array of another library, by `__cuda_array_interface__` alone."""

    def __init__(self, v: DeviceVec, shape: tuple[int, ...], **changes: Any) -> None:
        self.vec = v
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": "<i8",
            "data": (v.ptr, True),
            "strides": None,
            "stream": None,
            **changes,
        }


def both(curve: Curve, log_n: int, root: str, device: Device) -> tuple[Domain, Domain]:
    return (Domain(curve, log_n, root=root, device=device), Domain(curve, log_n, root=root, device="cpu"))


# ---- digits ----


@pytest.mark.parametrize("log_n", SIZES)
@pytest.mark.parametrize(("curve", "root"), KINDS, ids=lambda x: getattr(x, "name", x))
def test_every_transform_equals_the_cpus(curve: Curve, root: str, log_n: int, device: Device) -> None:
    gpu, cpu = both(curve, log_n, root, device)
    n, r = cpu.size, curve.fr.modulus
    calls: list[Callable[[Domain, Any], Any]] = [
        lambda d, v: d.ntt(v),
        lambda d, v: d.intt(v),
        lambda d, v: d.coset_ntt(v),
        lambda d, v: d.coset_intt(v),
        lambda d, v: d.coset_ntt(v, r - 2),
        lambda d, v: d.coset_intt(v, 12345),
    ]
    for batch in ((), (1,), (3,)) if log_n < 15 else ((), (2,)):
        v = rows(curve, n, *batch)
        there = on_device(curve, v, device)
        for call in calls:
            want = call(cpu, v)
            poison(device, v.nbytes)
            got = call(gpu, there)
            assert got is not there
            assert np.array_equal(on_host(curve, got), want.reshape(-1, 4))
            got.release()
        assert np.array_equal(on_host(curve, there), v.reshape(-1, 4)), "the argument is as it was"
        there.release()


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda c: c.name)
def test_inverse_of_forward_is_the_identity(curve: Curve, device: Device) -> None:
    for log_n in (0, 1, 2, 3, 9, 10, 11):
        domain = Domain(curve, log_n, root="bellman", device=device)
        v = rows(curve, domain.size)
        assert np.array_equal(domain.intt(domain.ntt(v)), v)
        for shift in (None, 1, 3, curve.fr.modulus - 1):
            assert np.array_equal(domain.coset_intt(domain.coset_ntt(v, shift), shift), v)
            assert np.array_equal(domain.coset_ntt(domain.coset_intt(v, shift), shift), v)


def test_more_shifts_than_are_kept(device: Device) -> None:
    gpu, cpu = both(BN254, 4, "snarkjs", device)
    v = rows(BN254, 16)
    for shift in [*range(2, 20), 2, 3, 19]:
        assert np.array_equal(gpu.coset_ntt(v, shift), cpu.coset_ntt(v, shift))


# ---- kinds ----


@pytest.mark.parametrize("where", ["cpu", "gpu"])
def test_host_arrays_are_answered_in_kind(where: str, device: Device) -> None:
    gpu, cpu = both(BN254, 5, "snarkjs", device)
    domain = cpu if where == "cpu" else gpu
    for batch in ((), (1,), (3,), (0,)):
        v = rows(BN254, 32, *batch)
        kept = v.copy()
        want = cpu.ntt(v)
        got = domain.ntt(v)
        assert (type(got), got.shape, got.dtype) == (np.ndarray, v.shape, np.uint64)
        assert np.array_equal(got, want)
        assert got.flags.writeable
        pool = PinnedPool(MemoryBudget(1 << 24), kind="pageable")
        with PinnedVec.from_array(BN254.fr, v.reshape(-1, 4), pool=pool) as pinned:
            with domain.ntt(pinned) as out:
                assert isinstance(out, PinnedVec)
                assert (out.elem, out.pool, len(out)) == (BN254.fr, pool, len(pinned))
                assert np.array_equal(out.borrow().numpy(), want.reshape(-1, 4))
            assert np.array_equal(pinned.borrow().numpy(), kept.reshape(-1, 4))
        assert np.array_equal(v, kept)
    twice = rows(BN254, 64)
    assert np.array_equal(domain.ntt(twice[::2]), cpu.ntt(twice[::2].copy()))
    assert np.array_equal(domain.ntt(twice[::-1][:32]), cpu.ntt(twice[::-1][:32].copy()))
    fixed = rows(BN254, 32)
    fixed.flags.writeable = False
    assert np.array_equal(domain.ntt(fixed), cpu.ntt(fixed))


def test_device_arrays_are_answered_by_vectors(device: Device) -> None:
    gpu, cpu = both(BLS12_381, 5, "bellman", device)
    for batch in ((), (2,)):
        v = rows(BLS12_381, 32, *batch)
        owner, want = on_device(BLS12_381, v, device), cpu.coset_intt(v).reshape(-1, 4)
        for argument in (owner, Foreign(owner, v.shape), Foreign(owner, v.shape, version=2)):
            got = gpu.coset_intt(argument)
            assert isinstance(got, DeviceVec)
            assert (got.elem, got.device, len(got)) == (BLS12_381.fr, device, want.shape[0])
            assert got.__cuda_array_interface__["shape"] == want.shape
            assert np.array_equal(on_host(BLS12_381, got), want)
            again = gpu.coset_ntt(got)
            assert np.array_equal(on_host(BLS12_381, again), v.reshape(-1, 4))
            again.release()
            got.release()
        owner.release()
    empty = gpu.ntt(DeviceVec(BLS12_381.fr, 0, device))
    assert len(empty) == 0


def test_memory_comes_back(device: Device) -> None:
    domain = Domain(BN254, 6, root="snarkjs", device=device)
    v = rows(BN254, 64)
    owner = on_device(BN254, v, device)
    domain.coset_ntt(v), domain.coset_intt(v)  # tables
    device.settle(10)
    used = device.budget.stats().used
    for _ in range(3):
        domain.coset_ntt(v)
        with PinnedVec.from_array(BN254.fr, v) as pinned:
            domain.coset_intt(pinned).release()
        for argument in (owner, Foreign(owner, (64, 4))):
            domain.coset_ntt(argument).release()
            domain.coset_ntt(argument)  # dropped
        with pytest.raises(ValueError, match="uint64"):
            domain.ntt(Foreign(owner, (32, 4)))
    device.settle(10)
    assert device.budget.stats().used == used
    del domain
    owner.release()
    device.settle(10)
    assert device.budget.stats().used < used


# ---- streams and threads ----


def test_a_stream_orders_both_ways(device: Device) -> None:
    gpu, cpu = both(BN254, 10, "snarkjs", device)
    theirs = Stream(device)
    v = rows(BN254, 1024)
    for stream in (theirs, theirs.handle):
        owner = DeviceVec(BN254.fr, 1024, device)
        with PinnedVec.from_array(BN254.fr, v) as pinned:
            owner.upload(pinned, theirs)  # nobody waits for it but what comes on that stream
        there = gpu.ntt(owner, stream=stream)
        back = gpu.intt(there, stream=stream)
        with PinnedVec(BN254.fr, 1024) as out, PinnedVec(BN254.fr, 1024) as values:
            back.download(out, theirs)
            there.download(values, theirs)
            for vec in (owner, there, back):
                vec.release()
            theirs.synchronize()
            assert np.array_equal(out.borrow().numpy(), v)
            assert np.array_equal(values.borrow().numpy(), cpu.ntt(v))
    with pytest.raises(ValueError, match="stream is for device arrays"):
        gpu.ntt(v, stream=theirs)
    with pytest.raises(ValueError, match="the CPU backend has no streams"):
        cpu.ntt(v, stream=theirs)


def test_without_a_stream_work_comes_behind_all_uses_of_a_vector(device: Device) -> None:
    gpu, cpu = both(BN254, 10, "snarkjs", device)
    v = rows(BN254, 1024)
    for _ in range(5):
        owner = DeviceVec(BN254.fr, 1024, device)
        half = v[:512].copy(), v[512:].copy()
        for i, part in enumerate(half):  # on two streams
            with PinnedVec.from_array(BN254.fr, part) as pinned:
                owner.upload(pinned, Stream(device), start=512 * i)
        out = gpu.ntt(owner)
        assert np.array_equal(on_host(BN254, out), cpu.ntt(v))


def test_threads_share_a_domain(device: Device) -> None:
    gpu, cpu = both(BLS12_381, 7, "snarkjs", device)
    wrong: list[object] = []

    def work(i: int) -> None:
        try:
            v = rows(BLS12_381, 128, i + 1)
            for shift in (None, i + 2, 5):
                owner = on_device(BLS12_381, v, device)
                for argument in (v, owner):
                    got = gpu.coset_ntt(argument, shift)
                    got = on_host(BLS12_381, got) if isinstance(got, DeviceVec) else got.reshape(-1, 4)
                    if not np.array_equal(got, cpu.coset_ntt(v, shift).reshape(-1, 4)):
                        wrong.append((i, shift, type(argument)))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# ---- refusals ----


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros((7, 4), np.uint64),
        np.zeros((16, 4), np.uint64),
        np.zeros((2, 7, 4), np.uint64),
        np.zeros((1, 1, 8, 4), np.uint64),
        np.zeros((8, 5), np.uint64),
        np.zeros((8, 4), np.int64),
        np.zeros(32, np.uint64),
        np.uint64(3),
        [0] * 8,
        None,
        "8",
    ],
    ids=lambda x: f"{x.dtype}{x.shape}" if isinstance(x, np.ndarray) else str(x),
)
@pytest.mark.parametrize("where", ["cpu", "gpu"])
def test_arrays_that_do_not_fit(where: str, bad: object, device: Device) -> None:
    domain = Domain(BN254, 3, root="snarkjs", device="cpu" if where == "cpu" else device)
    for f in (domain.ntt, domain.intt, domain.coset_ntt, domain.coset_intt):
        with pytest.raises(ValueError, match=r"expected an array uint64\[8, 4\] or uint64\[k, 8, 4\], not "):
            f(bad)


def test_vectors_that_do_not_fit(device: Device) -> None:
    gpu, cpu = both(BN254, 3, "snarkjs", device)
    for elem, n in ((BN254.fr, 7), (BN254.fr, 12)):
        with PinnedVec(elem, n) as pinned, DeviceVec(elem, n, device) as vec:
            pinned.resize(n)
            vec.commit(n)
            for call in (lambda: cpu.ntt(pinned), lambda: gpu.ntt(pinned), lambda: gpu.ntt(vec)):
                with pytest.raises(ValueError, match=f"a vector of 8 elements or a multiple, not of {n}"):
                    call()
    for other in (BLS12_381.fr, BN254.fp, BN254.g1, "bytes"):
        with PinnedVec(other, 8) as pinned, DeviceVec(other, 8, device) as vec:
            for call in (lambda: cpu.ntt(pinned), lambda: gpu.ntt(pinned), lambda: gpu.ntt(vec)):
                with pytest.raises(TypeError, match="the vector must be of bn254"):
                    call()
    gone = DeviceVec(BN254.fr, 8, device)
    gone.commit(8)
    with pytest.raises(ValueError, match="make the domain with device='cuda'"):
        cpu.ntt(gone)
    gone.release()
    with pytest.raises(UseAfterRelease):
        gpu.ntt(gone)
    with pytest.raises(ValueError, match="shift"):
        gpu.coset_ntt(np.zeros((8, 4), np.uint64), 0)


def test_device_arrays_that_do_not_fit(device: Device) -> None:
    gpu = Domain(BN254, 3, root="snarkjs", device=device)
    owner = on_device(BN254, rows(BN254, 16), device)
    for shape, changes in (
        ((7, 4), {}),
        ((16, 4), {}),
        ((32,), {}),
        ((1, 1, 8, 4), {}),
        ((4, 8), {}),
        ((8, 4), {"typestr": "<f8"}),
        ((8, 4), {"strides": (64, 8)}),
        ((8, 4), {"data": (64, False)}),
        ((8, 4), {"mask": owner}),
    ):
        with pytest.raises(ValueError, match=r"expected|one behind the other|device memory|masked"):
            gpu.ntt(Foreign(owner, shape, **changes))
    assert np.array_equal(
        on_host(BN254, gpu.ntt(owner)), gpu.ntt(rows(BN254, 16).reshape(2, 8, 4)).reshape(-1, 4)
    )


def test_what_does_not_fit_the_device_loses_nothing(device: Device) -> None:
    gpu = Domain(BN254, 10, root="snarkjs", device=device)
    v = rows(BN254, 1024)
    want = gpu.ntt(v)
    device.settle(10)
    budget = device.budget
    used = budget.stats().used
    left = budget.try_reserve(budget.total - used - 40_000, "the rest")
    assert left is not None
    owner = on_device(BN254, v, device)
    for argument in (owner, v):
        with pytest.raises(BudgetExceeded):
            gpu.ntt(argument)
    owner.release()
    left.release()
    device.settle(10)
    assert budget.stats().used == used
    assert np.array_equal(gpu.ntt(v), want)


def test_a_forked_child_is_told(device: Device) -> None:
    domain = Domain(BN254, 4, root="snarkjs", device=device)
    v = rows(BN254, 16)
    owner = on_device(BN254, v, device)
    want = domain.ntt(v)
    with domain._on_device._lock:  # type: ignore[union-attr]  # another thread may be in a call
        child = os.fork()
        if child == 0:
            told = 0
            for argument in (v, owner):
                try:
                    domain.ntt(argument)
                except ForkError:
                    told += 1
            os._exit(0 if told == 2 and np.array_equal(Domain(BN254, 4, root="snarkjs").ntt(v), want) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert np.array_equal(domain.ntt(v), want)


def test_the_callers_context_stays(device: Device) -> None:
    libcuda = ctypes.CDLL("libcuda.so.1")

    def current() -> int | None:
        context = ctypes.c_void_p()
        assert libcuda.cuCtxGetCurrent(ctypes.byref(context)) == 0
        return context.value

    before = current()
    domain = Domain(BN254, 4, root="snarkjs", device=device)
    v = rows(BN254, 16)
    owner = on_device(BN254, v, device)
    for argument in (v, owner, Foreign(owner, (16, 4), version=2)):
        domain.coset_intt(domain.coset_ntt(argument))
        with pytest.raises(ValueError, match=r"vector of 8|expected an array"):
            Domain(BN254, 3, root="snarkjs", device=device).ntt(v)
        assert current() == before
