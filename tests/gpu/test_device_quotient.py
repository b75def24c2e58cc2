# SPDX-License-Identifier: Apache-2.0
"""The quotient's pipelines on a GPU against the CPU backend, element by element. Large sizes: ``bench_quotient.py``."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import pytest
from references import CURVES, by_name, random_ints
from simulator import SIMULATED

from pinzk import BLS12_381, BN254, Domain, backend
from pinzk._core import cpu
from pinzk._core.device import Device, DeviceVec, Stream, launch
from pinzk._core.memory import MemoryBudget, PinnedPool, PinnedVec
from pinzk._testing import TOY
from pinzk.curves import Curve, Words
from pinzk.errors import BorrowError, UseAfterMove, UseAfterRelease
from pinzk.stages import quotient
from pinzk.stages.device_quotient import DeviceQuotient, Uploaded, bit_reversed

KINDS = [(c, root) for c in CURVES for root in ("snarkjs", "bellman")]
every_kind = pytest.mark.parametrize(("curve", "root"), KINDS, ids=[f"{c.name}-{r}" for c, r in KINDS])


@pytest.fixture
def pool() -> PinnedPool:
    return PinnedPool(MemoryBudget(1 << 28), kind="auto")


def rows(curve: Curve, n: int, seed: int) -> Words:
    if curve is TOY:
        return curve.fr.encode(random_ints(curve.fr.modulus, n, seed))
    out = np.random.default_rng(seed).integers(0, 1 << 64, size=(n, 4), dtype=np.uint64)
    out[:, 3] &= np.uint64((1 << (curve.fr.modulus.bit_length() - 193)) - 1)
    out[: n // 3 : 2] = 0
    return out


def padded(array: Words, n: int) -> Words:
    return np.concatenate([array, np.zeros((n - len(array), 4), np.uint64)])


def on_host(v: DeviceVec, stream: Stream) -> Words:
    pinned = PinnedVec(v.elem, len(v))
    v.download(pinned, stream)
    stream.synchronize()
    out = np.array(pinned.borrow().numpy())
    pinned.release()
    return out


def on_cpu(domain: Domain, pipeline: str, arrays: list[Words]) -> Words:
    """In the device's form: canonical, a bellman key's in bit-reversed order."""
    full = [padded(x, domain.size) for x in arrays]
    out = cpu.from_montgomery(domain.curve.fr, getattr(quotient, pipeline)(domain, *full))
    return out[bit_reversed(domain.log_n)] if pipeline == "bellman" else out


PIPELINES = {"snarkjs": 2, "bellman": 3, "prepared": 2}


def sizes(curve: Curve) -> list[int]:
    return [k for k in ((0, 1, 2, 3, 5, 8, 11) if SIMULATED else range(15)) if k < curve.fr.two_adicity]


@pytest.mark.parametrize("pipeline", PIPELINES)
@every_kind
def test_quotients_on_the_device_equal_the_cpus(
    curve: Curve, root: str, pipeline: str, device: Device
) -> None:
    for log_n in sizes(curve):
        domain = Domain(curve, log_n, root=root, device="cpu")
        h, n = DeviceQuotient(domain, device), domain.size
        for lengths in ([n] * 3, [n - 1, n // 2, 1], [0, n, n - n // 4]):
            arrays = [rows(curve, m, 7 * i + m) for i, m in enumerate(lengths[: PIPELINES[pipeline]])]
            vecs = [PinnedVec.from_array(curve.fr, x) for x in arrays]
            out = getattr(h, pipeline)(*vecs)
            for v in vecs:
                v.release()  # at once: the copies may not have begun
            got = on_host(out, h.stream)
            assert np.array_equal(got, on_cpu(domain, pipeline, arrays)), f"2^{log_n}, {lengths}"
            out.release()
        h.close()
    device.settle(timeout=10)


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=by_name)
def test_edge_values(curve: Curve, device: Device) -> None:
    """Rows of 0, 1, -1 and the ends of the range; results are below the modulus."""
    domain, r = Domain(curve, 6, root="bellman", device="cpu"), curve.fr.modulus
    for i, value in enumerate([0, 1, r - 1, r // 2, (1 << 128) - 1]):
        arrays = [curve.fr.encode([value] * domain.size)] * 2 + [rows(curve, domain.size, i)]
        for pipeline, count in PIPELINES.items():
            h = DeviceQuotient(domain, device)
            vecs = [PinnedVec.from_array(curve.fr, x) for x in arrays[:count]]
            got = on_host(getattr(h, pipeline)(*vecs), h.stream)
            assert np.array_equal(got, on_cpu(domain, pipeline, arrays[:count]))
            assert cpu.first_unreduced(curve.fr, got) is None


def test_an_unsatisfied_constraint_is_no_special_case(device: Device) -> None:
    """(a b - c) / Z is no polynomial then; both backends give the same scalars all the same, the top one apart."""
    domain = Domain(BN254, 4, root="bellman", device="cpu")
    h, arrays = DeviceQuotient(domain, device), [rows(BN254, 16, i) for i in range(3)]
    got = on_host(h.bellman(*[PinnedVec.from_array(BN254.fr, x) for x in arrays]), h.stream)
    assert np.array_equal(got, on_cpu(domain, "bellman", arrays))


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_quotients_in_a_row_need_no_waiting(pipeline: str, device: Device) -> None:
    domain = Domain(BLS12_381, 9, root="bellman", device="cpu")
    h, fr, count = DeviceQuotient(domain, device), BLS12_381.fr, PIPELINES[pipeline]
    work = [[rows(BLS12_381, 512 - j, 31 * i + j) for j in range(count)] for i in range(5)]
    out = []
    for arrays in work:
        vecs = [PinnedVec.from_array(fr, x) for x in arrays]
        out.append(getattr(h, pipeline)(*vecs))
        for v in vecs:
            v.release()
    for arrays, v in zip(work, out, strict=True):
        assert np.array_equal(on_host(v, h.stream), on_cpu(domain, pipeline, arrays))


def writer(array: Words, device: Device) -> Callable[[DeviceVec, int, Stream], int]:
    """Evaluations that are made on the device: here, copied from another vector."""

    def write(out: DeviceVec, first: int, stream: Stream) -> int:
        if len(array):
            source = DeviceVec(out.elem, len(array), device)
            pinned = PinnedVec.from_array(out.elem, array)
            source.upload(pinned, stream)
            pinned.release()
            one = out.elem.encode([1]).tobytes()
            kernel = backend.load("vec", out.elem.curve_name, device).function("vec_times")
            launch(kernel, 4, 64, ((out, first), source, one, len(array)), stream=stream)
        return len(array)

    return write


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_rows_may_be_made_on_the_device(pipeline: str, device: Device) -> None:
    domain = Domain(BN254, 8, root="bellman", device="cpu")
    h = DeviceQuotient(domain, device)
    arrays = [rows(BN254, m, m) for m in (256, 100, 0)[: PIPELINES[pipeline]]]
    parts: list = []
    got = on_host(getattr(h, pipeline)(*[writer(x, device) for x in arrays], parts=parts), h.stream)
    assert np.array_equal(got, on_cpu(domain, pipeline, arrays))
    assert {"rows of a", "rows of b", "transforms of a"} <= {name for name, _, _ in parts}
    assert all(end.elapsed_ms(begin) >= 0 for _, begin, end in parts)


def test_functions_that_fail_or_write_too_much(device: Device) -> None:
    """The error passes, the device's memory comes back, and the next quotient is right."""
    domain = Domain(BN254, 4, root="bellman", device="cpu")
    h, good = DeviceQuotient(domain, device), rows(BN254, 16, 1)
    vec = PinnedVec.from_array(BN254.fr, good)
    h.prepared(vec, vec).release()  # tables
    h.stream.synchronize()
    device.settle(timeout=10)
    used = device.budget.stats().used

    def fails(out: DeviceVec, first: int, stream: Stream) -> int:
        raise ZeroDivisionError

    for bad, error in ((fails, ZeroDivisionError), (lambda out, first, stream: 17, ValueError)):
        with pytest.raises(error):
            h.prepared(vec, bad)
        with pytest.raises(error):
            h.bellman(vec, vec, bad)
    gc.collect()
    h.stream.synchronize()
    device.settle(timeout=10)
    assert device.budget.stats().used == used
    got = on_host(h.prepared(vec, writer(good, device)), h.stream)
    assert np.array_equal(got, on_cpu(domain, "prepared", [good, good]))


def test_an_upload_may_begin_before_its_quotient(device: Device) -> None:
    domain = Domain(BLS12_381, 7, root="bellman", device="cpu")
    h, arrays = DeviceQuotient(domain, device), [rows(BLS12_381, m, m) for m in (128, 99, 1)]
    for pipeline, count in PIPELINES.items():
        vecs = [PinnedVec.from_array(BLS12_381.fr, x) for x in arrays[:count]]
        begun = [h.upload(v, 1 + (pipeline == "snarkjs" and i == 1)) for i, v in enumerate(vecs)]
        for v in vecs:
            v.release()
        assert np.array_equal(
            on_host(getattr(h, pipeline)(*begun), h.stream), on_cpu(domain, pipeline, arrays[:count])
        )
    v = PinnedVec.from_array(BLS12_381.fr, arrays[0])
    with pytest.raises(ValueError, match="b was uploaded to 128 elements, not 2 vectors of 128"):
        h.snarkjs(v, h.upload(v))
    one = h.upload(v)
    with pytest.raises(ValueError, match="b is the upload of another argument"):
        h.prepared(one, one)
    with pytest.raises(ValueError, match="a has 129 rows"):
        h.prepared(Uploaded(one.vec, 129, one.there), v)
    other = DeviceVec(BN254.fr, 128, device)
    with pytest.raises(TypeError, match=r"a holds elements of bn254\.fr"):
        h.prepared(Uploaded(other, 128, one.there), v)


def test_pinned_memory_comes_home_after_the_upload(device: Device, pool: PinnedPool) -> None:
    domain = Domain(BN254, 10, root="snarkjs", device="cpu")
    h = DeviceQuotient(domain, device)
    for _ in range(3):
        vecs = [PinnedVec.from_array(BN254.fr, rows(BN254, 1000, i), pool) for i in range(2)]
        out = h.snarkjs(*vecs)
        for v in vecs:
            v.release()
        h.uploads.synchronize()
        pool.settle(timeout=10)
        assert pool.stats().out == pool.stats().pending == 0
        out.release()
    assert pool.stats().allocations <= 4
    pool.close()


def test_device_memory_after_many_quotients_is_that_after_the_first(device: Device) -> None:
    domain = Domain(BN254, 7, root="bellman", device="cpu")
    h, held = DeviceQuotient(domain, device), []
    vecs = [PinnedVec.from_array(BN254.fr, rows(BN254, 128, i)) for i in range(3)]
    for _ in range(4):
        for pipeline, count in PIPELINES.items():
            getattr(h, pipeline)(*vecs[:count]).release()
        h.stream.synchronize()
        device.settle(timeout=10)
        held.append(device.budget.stats().used)
    assert len(set(held)) == 1
    h.close()
    h.close()
    gc.collect()
    device.settle(timeout=10)
    assert device.budget.stats().used < held[0]
    out = h.prepared(*vecs[:2])  # tables are made again
    assert np.array_equal(
        on_host(out, h.stream), on_cpu(domain, "prepared", [v.borrow().numpy() for v in vecs[:2]])
    )


def test_what_does_not_fit_is_refused_before_anything_happens(device: Device) -> None:
    domain = Domain(BN254, 3, root="bellman", device="cpu")
    h = DeviceQuotient(domain, device)
    good, long, other, released, moved = (
        PinnedVec.from_array(BN254.fr, rows(BN254, 8, 1)),
        PinnedVec.from_array(BN254.fr, rows(BN254, 9, 1)),
        PinnedVec.from_array(BLS12_381.fr, rows(BLS12_381, 8, 1)),
        PinnedVec.from_array(BN254.fr, rows(BN254, 8, 1)),
        PinnedVec.from_array(BN254.fr, rows(BN254, 8, 1)),
    )
    released.release()
    moved.into_backing().release()
    used = device.budget.stats().used
    with pytest.raises(ValueError, match="b has 9 rows, more than the domain's 8"):
        h.snarkjs(good, long)
    with pytest.raises(TypeError, match=r"a holds elements of bls12_381\.fr, the quotient is over bn254\.fr"):
        h.prepared(other, good)
    with pytest.raises(TypeError, match="c holds elements of bytes"):
        h.bellman(good, good, PinnedVec("bytes", 8))
    with pytest.raises(TypeError, match="c must be a PinnedVec, an Uploaded or a function that writes rows"):
        h.bellman(good, good, rows(BN254, 8, 1))  # type: ignore[arg-type]
    with pytest.raises(UseAfterRelease):
        h.snarkjs(good, released)
    with pytest.raises(UseAfterMove):
        h.snarkjs(moved, good)
    assert device.budget.stats().used == used
    lease = good.borrow_mut()
    with pytest.raises(BorrowError, match="writer"):
        h.snarkjs(good, good)
    del lease
    arrays = [np.array(good.borrow().numpy())] * 2
    assert np.array_equal(on_host(h.snarkjs(good, good), h.stream), on_cpu(domain, "snarkjs", arrays))
