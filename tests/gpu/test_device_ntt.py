# SPDX-License-Identifier: Apache-2.0
"""The transforms on a GPU against the CPU backend, small sizes; plans of passes everywhere.

Large sizes: ``benchmarks/bench_gpu_ntt.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from simulator import SIMULATED

from pinzk import BLS12_381, BN254, Domain
from pinzk._core import cpu
from pinzk._core.device import Device, DeviceVec, Stream
from pinzk._core.memory import PinnedVec
from pinzk.curves import Curve, Words
from pinzk.stages.device_ntt import TILE_LOG, DeviceNtt, plan

KINDS = [(BN254, "snarkjs"), (BLS12_381, "snarkjs"), (BLS12_381, "bellman")]


@pytest.mark.parametrize("log_n", range(3, 33))
def test_passes_cover_all_levels_and_only_the_first_step_is_narrow(log_n: int) -> None:
    levels = plan(log_n)
    assert sum(levels) == log_n
    assert all(3 <= n <= (TILE_LOG if len(levels) == 1 else 9) for n in levels)
    assert all(n % 3 == 0 for n in levels[1:])


def rows(curve: Curve, n: int) -> Words:
    out = np.random.default_rng(n).integers(0, 1 << 64, size=(n, 4), dtype=np.uint64)
    out[:, 3] &= np.uint64((1 << (curve.fr.modulus.bit_length() - 193)) - 1)
    return out


def on_device(curve: Curve, array: Words, device: Device, stream: Stream) -> DeviceVec:
    v = DeviceVec(curve.fr, len(array), device)
    pinned = PinnedVec.from_array(curve.fr, array)
    v.upload(pinned, stream)
    pinned.release()
    return v


def on_host(curve: Curve, v: DeviceVec, stream: Stream) -> Words:
    pinned = PinnedVec(curve.fr, len(v))
    pinned.resize(len(v))
    v.download(pinned, stream)
    stream.synchronize()
    out = np.array(pinned.borrow().numpy())
    pinned.release()
    return out


def swapped(curve: Curve, array: Words) -> Words:
    out = array.copy()
    cpu.bit_reverse(curve.fr, out)
    return out


@pytest.mark.parametrize("log_n", range(15))
@pytest.mark.parametrize(("curve", "root"), KINDS, ids=[f"{c.name}-{r}" for c, r in KINDS])
def test_device_transforms_equal_the_cpus(curve: Curve, root: str, log_n: int, device: Device) -> None:
    n, vectors = 1 << log_n, 1 if SIMULATED and log_n > 12 else 3
    domain, stream = Domain(curve, log_n, root=root, device="cpu"), Stream(device)
    ntt = DeviceNtt(curve, log_n, domain.omega, device)
    data = rows(curve, vectors * n)
    parts = [np.ascontiguousarray(data[i * n : (i + 1) * n]) for i in range(vectors)]
    forward = [domain.ntt(p) for p in parts]

    v = on_device(curve, data, device, stream)
    ntt.dif(v, stream)
    assert np.array_equal(on_host(curve, v, stream), np.concatenate([swapped(curve, f) for f in forward]))
    natural = DeviceVec(curve.fr, vectors * n, device)
    natural.commit(vectors * n)
    ntt.bit_reverse(natural, v, stream)
    assert np.array_equal(on_host(curve, natural, stream), np.concatenate(forward))

    ntt.dit(v, stream, inverse=True)  # n times what there was
    ntt.scale(v, ntt.powers(1, pow(n, -1, curve.fr.modulus), stream, reversed_order=False), stream)
    assert np.array_equal(on_host(curve, v, stream), data)

    bit_reversed = on_device(curve, np.concatenate([swapped(curve, p) for p in parts]), device, stream)
    ntt.dit(bit_reversed, stream)
    assert np.array_equal(on_host(curve, bit_reversed, stream), np.concatenate(forward))

    shift = pow(n, -1, curve.fr.modulus)
    coset = np.concatenate([domain.coset_ntt(domain.intt(p)) for p in parts])
    ntt.to_coset(v, stream, shift=domain.default_shift)
    assert np.array_equal(on_host(curve, v, stream), coset)

    ntt.dif(v, stream, inverse=True, shift=pow(domain.default_shift, -1, curve.fr.modulus), scale=shift)
    coefficients = np.concatenate([swapped(curve, domain.intt(p)) for p in parts])
    assert np.array_equal(on_host(curve, v, stream), coefficients)
    ntt.dit(v, stream, shift=domain.default_shift)
    assert np.array_equal(on_host(curve, v, stream), coset)
    ntt.close()


@pytest.mark.parametrize(
    ("passes", "tile_log"), [([5, 7], 10), ([4, 4, 4], 8), ([7, 5], 9), ([4, 5, 3], 6), ([8, 4], 8)]
)
def test_all_schedules_agree(passes: list[int], tile_log: int, device: Device) -> None:
    curve, log_n, shift = BLS12_381, 12, 7
    domain, stream = Domain(curve, log_n, root="bellman", device="cpu"), Stream(device)
    ntt = DeviceNtt(curve, log_n, domain.omega, device, passes=passes, tile_log=tile_log)
    data = rows(curve, 2 << log_n)
    v = on_device(curve, data, device, stream)
    ntt.dif(v, stream)
    parts = np.split(data, 2)
    assert np.array_equal(
        on_host(curve, v, stream), np.concatenate([swapped(curve, domain.ntt(p)) for p in parts])
    )
    ntt.dit(v, stream, inverse=True, scale=pow(domain.size, -1, curve.fr.modulus))
    assert np.array_equal(on_host(curve, v, stream), data)
    ntt.to_coset(v, stream, shift=shift)
    coset = [domain.coset_ntt(domain.intt(p), shift=shift) for p in parts]
    assert np.array_equal(on_host(curve, v, stream), np.concatenate(coset))
    ntt.close()


@pytest.mark.parametrize(
    ("passes", "tile_log"),
    [([5, 6], 10), ([3, 9], 10), ([10, 2], 10), ([6, 6], 5), ([6, 3, 3], 10), ([12], 10)],
)
def test_schedules_that_tiles_do_not_allow(passes: list[int], tile_log: int, device: Device) -> None:
    with pytest.raises(ValueError, match="are no transform of"):
        DeviceNtt(BN254, 12, 1, device, passes=passes, tile_log=tile_log)


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda c: c.name)
def test_device_products_equal_the_cpus(curve: Curve, device: Device) -> None:
    stream, n = Stream(device), 1000
    a, b, c = (rows(curve, n + i)[:n] for i in range(3))
    ntt = DeviceNtt(curve, 0, 1, device)
    x, y, z = (on_device(curve, np.ascontiguousarray(v), device, stream) for v in (a, b, c))
    ntt.multiply_subtract(z, x, y, z, stream)
    assert np.array_equal(on_host(curve, z, stream), cpu.multiply_subtract(curve.fr, a, b, c))
    ntt.multiply(x, x, y, stream)
    assert np.array_equal(on_host(curve, x, stream), cpu.multiply(curve.fr, a, b))
