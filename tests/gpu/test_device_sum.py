# SPDX-License-Identifier: Apache-2.0
"""`msm` on a GPU equals the CPU backend, for every kind of argument; refusals."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import simulator

from pinzk import BLS12_381, BN254, msm
from pinzk._core import cpu
from pinzk._core.device import Device, DeviceVec, Stream
from pinzk._core.memory import PinnedVec
from pinzk.curves import Group, Words
from pinzk.errors import FormatError, UseAfterRelease

GROUPS = [g for c in (BN254, BLS12_381) for g in (c.g1, c.g2)]
every_group = pytest.mark.parametrize("group", GROUPS, ids=lambda g: g.name)
SIZES = (0, 1, 2, 33, 200) if simulator.SIMULATED else (0, 1, 2, 31, 32, 33, 237, 5000, 70_001)


def inputs(group: Group, n: int) -> tuple[Words, Words]:
    """Points with infinity, equal and opposite ones among them; canonical scalars with 0, 1, r - 1."""
    draw, r = np.random.default_rng(n), group.scalar.modulus
    scalars = [int.from_bytes(draw.bytes(40), "little") % r for _ in range(n)]
    scalars[::5] = [(0, 1, r - 1, 2, 1 << 128)[i % 5] for i in range(len(scalars[::5]))]
    logs = [int(x) for x in draw.integers(0, 6, n)]
    logs[::3] = [r - k for k in logs[::3]]
    bases = cpu.fixed_base(group, cpu.generator(group), group.scalar.encode_canonical([k % r for k in logs]))
    return bases, group.scalar.encode_canonical(scalars)


def on_device(elem: Any, rows: Words, device: Device) -> DeviceVec:
    stream = Stream(device)
    out = DeviceVec(elem, len(rows), device)
    with PinnedVec.from_array(elem, rows) as pinned:
        out.upload(pinned, stream)
        stream.synchronize()
    return out


class Foreign:
    """An array of another library."""

    def __init__(self, vec: DeviceVec, shape: tuple[int, ...], **changes: Any) -> None:
        self.vec = vec
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": "<u8",
            "data": (vec.ptr, True),
            "strides": None,
            "stream": None,
            **changes,
        }


@every_group
@pytest.mark.parametrize("n", SIZES)
def test_sums_equal_the_cpus(group: Group, n: int, device: Device) -> None:
    bases, scalars = inputs(group, n)
    want = msm(group, bases, scalars, canonical=True, device="cpu")
    assert np.array_equal(msm(group, bases, scalars, canonical=True, device=device), want)
    mont = cpu.to_montgomery(group.scalar, scalars)
    assert np.array_equal(msm(group, bases, mont, device=device), want)


@pytest.mark.parametrize("group", [BN254.g1, BLS12_381.g2], ids=lambda g: g.name)
def test_every_kind_of_argument(group: Group, device: Device) -> None:
    n = 20
    bases, scalars = inputs(group, n)
    want = msm(group, bases, scalars, canonical=True, device="cpu")
    device.settle(10)
    used = device.budget.stats().used
    points, k = on_device(group, bases, device), on_device(group.scalar, scalars, device)
    with PinnedVec.from_array(group, bases) as p, PinnedVec.from_array(group.scalar, scalars) as q:
        assert np.array_equal(msm(group, p, q, canonical=True, device="cpu"), want)
        pairs: list[tuple[Any, Any]] = [
            (bases, q),
            (p, scalars),
            (points, Foreign(k, scalars.shape, typestr="<i8")),
            (Foreign(points, bases.shape), k),
            (np.repeat(bases, 2, axis=0)[::2], scalars[::-1][::-1]),
        ]
        for b, s in pairs:
            got = msm(group, b, s, canonical=True, device=device)
            assert got.shape == (1, group.limbs)
            assert np.array_equal(got, want), (type(b), type(s))
    assert (len(points), len(k)) == (n, n)
    points.release()
    k.release()
    device.settle(10)
    assert device.budget.stats().used == used


def test_a_stream_comes_before(device: Device) -> None:
    group = BN254.g1
    bases, scalars = inputs(group, 33)
    want = msm(group, bases, scalars, canonical=True, device="cpu")
    theirs = Stream(device)
    for stream in (theirs, theirs.handle):
        points, k = DeviceVec(group, 33, device), DeviceVec(group.scalar, 33, device)
        with PinnedVec.from_array(group, bases) as p, PinnedVec.from_array(group.scalar, scalars) as q:
            points.upload(p, theirs)
            k.upload(q, theirs)
        arrays = Foreign(points, bases.shape), Foreign(k, scalars.shape)  # which do not tell of the stream
        assert np.array_equal(msm(group, *arrays, canonical=True, device=device, stream=stream), want)


def test_threads(device: Device) -> None:
    group = BLS12_381.g1
    wrong: list[object] = []

    def work(n: int) -> None:
        try:
            bases, scalars = inputs(group, n)
            for _ in range(2):
                got = msm(group, bases, scalars, canonical=True, device=device)
                if not np.array_equal(got, msm(group, bases, scalars, canonical=True, device="cpu")):
                    wrong.append(n)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in (7, 20, 33, 50)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize("where", ["cpu", "gpu"])
def test_refusals(where: str, device: Device) -> None:
    group, r = BN254.g1, BN254.fr.modulus
    here: Any = "cpu" if where == "cpu" else device
    bases, scalars = np.zeros((3, group.limbs), np.uint64), np.zeros((3, 4), np.uint64)
    for canonical in (True, False):
        too_large = scalars.copy()
        too_large[1] = [r >> 64 * i & (1 << 64) - 1 for i in range(4)]
        with pytest.raises(FormatError, match="scalar 1 is not below the order") as caught:
            msm(group, bases, too_large, canonical=canonical, device=here)
        assert caught.value.index == 1
    with pytest.raises(ValueError, match="lengths differ: 3 and 2"):
        msm(group, bases, scalars[:2], device=here)
    for bad in (bases[:, :4], bases.astype(np.int64), bases[0], [1], None, "points"):
        with pytest.raises(ValueError, match=rf"bases must be an array uint64\[n, {group.limbs}\], not "):
            msm(group, bad, scalars, device=here)
    with PinnedVec.from_array(BN254.fr, scalars) as pinned:
        with pytest.raises(TypeError, match=r"bases must be of bn254\S*, not of bn254"):
            msm(group, pinned, pinned, device=here)
        with pytest.raises(ValueError, match="lengths differ"):
            msm(group, np.zeros((2, group.limbs), np.uint64), pinned, device=here)
    vec = on_device(BN254.fr, scalars, device)
    if where == "cpu":
        with pytest.raises(ValueError, match="scalars are on a GPU: say device='cuda'"):
            msm(group, bases, vec, device=here)
        with pytest.raises(ValueError, match="no streams"):
            msm(group, bases, scalars, device=here, stream=Stream(device))
        return
    for shape in ((12,), (1, 3, 4)):
        with pytest.raises(ValueError, match=r"scalars must be|expected shape"):
            msm(group, bases, Foreign(vec, shape), device=here)
    vec.release()
    with pytest.raises(UseAfterRelease):
        msm(group, bases, vec, device=here)
