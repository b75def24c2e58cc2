# SPDX-License-Identifier: Apache-2.0
"""pinzk beside CuPy and PyTorch in one process: arrays both ways without a copy, in order; nobody's context changes."""

from __future__ import annotations

import gc
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import simulator

from pinzk import BLS12_381, BN254, Domain
from pinzk._core.device import Device, DeviceVec, Stream
from pinzk.curves import Words
from pinzk.errors import BorrowError, WaitTimeout

pytestmark = pytest.mark.skipif(simulator.SIMULATED, reason="CuPy and PyTorch need a GPU")
LOG_N = 14
N = 1 << LOG_N


@pytest.fixture(scope="module")
def cupy() -> ModuleType:
    return pytest.importorskip("cupy")


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def domains() -> tuple[Domain, Domain]:
    return Domain(BN254, LOG_N, root="snarkjs", device="cuda"), Domain(
        BN254, LOG_N, root="snarkjs", device="cpu"
    )


def rows(*batch: int) -> Words:
    out = np.random.default_rng(1).integers(0, 1 << 60, size=(*batch, N, 4), dtype=np.uint64)
    out[..., 3] >>= np.uint64(2)
    return out


@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
def test_cupy_arrays(cupy: Any, domains: tuple[Domain, Domain], batch: tuple[int, ...]) -> None:
    gpu, cpu = domains
    v = rows(*batch)
    want = cpu.coset_ntt(v)
    for dtype in (np.uint64, np.int64):
        x = cupy.asarray(v.view(dtype))
        out = gpu.coset_ntt(x)
        assert isinstance(out, DeviceVec)
        back = cupy.asarray(out)
        assert back.data.ptr == out.ptr
        assert back.dtype == np.uint64
        assert np.array_equal(cupy.asnumpy(back.reshape(v.shape)), want)
        again = cupy.from_dlpack(out)
        assert again.data.ptr == out.ptr
        assert np.array_equal(cupy.asnumpy(again), want.reshape(-1, 4))
        with pytest.raises(BorrowError):
            out.release()
        del again
        gc.collect()
        out.release()
        assert np.array_equal(cupy.asnumpy(x).view(np.uint64), v)


@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
def test_torch_tensors(torch: Any, domains: tuple[Domain, Domain], batch: tuple[int, ...]) -> None:
    gpu, cpu = domains
    v = rows(*batch)
    want = cpu.intt(v)
    x = torch.from_numpy(v.view(np.int64)).cuda()
    out = gpu.intt(x)
    back = torch.from_dlpack(out)
    assert (back.data_ptr(), back.dtype, back.shape) == (out.ptr, torch.uint64, (len(want.reshape(-1, 4)), 4))
    assert np.array_equal(back.view(torch.int64).cpu().numpy().view(np.uint64), want.reshape(-1, 4))
    with pytest.raises(BorrowError):
        out.release()
    del back
    out.release()
    viewed = torch.as_tensor(gpu.intt(x.view(torch.uint64)), device="cuda")
    assert np.array_equal(viewed.view(torch.int64).cpu().numpy().view(np.uint64), want.reshape(-1, 4))
    assert np.array_equal(x.cpu().numpy().view(np.uint64), v)
    with pytest.raises(ValueError, match="in host memory"):
        gpu.ntt(x.cpu())
    with pytest.raises(ValueError, match="uint64 or int64"):
        gpu.ntt(x.double())
    with pytest.raises(ValueError, match="one behind the other"):
        gpu.ntt(x.transpose(-1, -2).contiguous().transpose(-1, -2))
    with pytest.raises(ValueError, match="multiple of 16"):
        flat = torch.zeros(4 * N + 1, dtype=torch.int64, device="cuda")
        gpu.ntt(flat[1:].view(N, 4))


def test_tensors_still_being_computed_are_waited_for(
    torch: Any, cupy: Any, domains: tuple[Domain, Domain]
) -> None:
    """A slow kernel of another library, then the value: on its default stream and on one of its own."""
    gpu, cpu = domains
    v = rows()
    want, source = cpu.ntt(v), torch.from_numpy(v.view(np.int64)).cuda()
    torch.cuda.synchronize()
    for side in (torch.cuda.default_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(side):
            x = torch.zeros_like(source)
            torch.cuda._sleep(100_000_000)
            x.copy_(source)
            out = torch.from_dlpack(gpu.ntt(x))
            got = out.view(torch.int64).cpu().numpy().view(np.uint64)
        assert np.array_equal(got, want)
    spin = cupy.RawKernel(
        'extern "C" __global__ void spin() { long long t = clock64(); while (clock64() - t < 100000000); }',
        "spin",
    )
    there = cupy.asarray(v)
    cupy.cuda.Device().synchronize()
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
        with stream:
            y = cupy.zeros_like(there)
            spin((1,), (1,), ())
            y[:] = there
            got = cupy.asnumpy(cupy.asarray(gpu.ntt(y)))
        assert np.array_equal(got, want)


def test_their_streams_order_calls_that_do_not_wait(
    torch: Any, cupy: Any, domains: tuple[Domain, Domain]
) -> None:
    gpu, cpu = domains
    v = rows()
    want = cpu.coset_ntt(cpu.ntt(v))
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.from_numpy(v.view(np.int64)).cuda()
        torch.cuda._sleep(50_000_000)
        values = gpu.ntt(x, stream=side.cuda_stream)
        del x  # its memory is not given to others before it was read
        junk = torch.full((4, N, 4), -1, dtype=torch.int64, device="cuda")
        out = gpu.coset_ntt(values, stream=side.cuda_stream)
        values.release()
        got = torch.from_dlpack(out).view(torch.int64).cpu().numpy().view(np.uint64)
        del junk
    assert np.array_equal(got, want)
    with cupy.cuda.Stream(non_blocking=True) as theirs:
        out = gpu.coset_ntt(gpu.ntt(cupy.asarray(v), stream=theirs), stream=theirs)
        assert np.array_equal(cupy.asnumpy(cupy.asarray(out)), want)


def test_memory_shown_to_others_is_not_reused_under_their_kernels(torch: Any, device: Device) -> None:
    gpu = Domain(BLS12_381, LOG_N, root="bellman", device=device)
    cpu = Domain(BLS12_381, LOG_N, root="bellman", device="cpu")
    v = rows()
    want = cpu.ntt(v)
    side = torch.cuda.Stream()
    for _ in range(5):
        with torch.cuda.stream(side):
            tensor = torch.from_dlpack(gpu.ntt(torch.from_numpy(v.view(np.int64)).cuda()))
            torch.cuda._sleep(200_000_000)
            copy = tensor.view(torch.int64).clone()  # enqueued, not run
        held = device.budget.stats().used
        del tensor  # the last to hold the vector
        with pytest.raises(WaitTimeout):
            device.settle(0.01)
        assert device.budget.stats().used == held
        for _ in range(4):
            stream = Stream(device)
            with DeviceVec(BLS12_381.fr, N, device) as other:
                gpu.coset_ntt(gpu.ntt(v))
                assert other.capacity == N
            stream.close()
        side.synchronize()
        device.settle(10)
        assert device.budget.stats().used < held
        assert np.array_equal(copy.cpu().numpy().view(np.uint64), want)


def test_current_devices_and_contexts_stay(torch: Any, cupy: Any, domains: tuple[Domain, Domain]) -> None:
    from cuda.bindings import driver

    def current() -> int:
        status, context = driver.cuCtxGetCurrent()
        assert int(status) == 0
        return int(context)

    torch.zeros(1).cuda()
    before = current(), torch.cuda.current_device(), cupy.cuda.Device().id, torch.cuda.current_stream()
    gpu, _ = domains
    v = rows()
    gpu.ntt(v), gpu.coset_intt(cupy.asarray(v)), gpu.ntt(torch.from_numpy(v.view(np.int64)).cuda())
    assert (
        current(),
        torch.cuda.current_device(),
        cupy.cuda.Device().id,
        torch.cuda.current_stream(),
    ) == before
    a = torch.rand(512, 512, device="cuda")
    assert torch.allclose(a @ a, (a.cpu() @ a.cpu()).cuda(), atol=1e-2)
    assert int(cupy.arange(1000).sum()) == 499500
