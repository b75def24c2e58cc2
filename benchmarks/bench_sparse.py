# SPDX-License-Identifier: Apache-2.0
"""A w and B w on a GPU from the witness alone: checked against the CPU backend in the same run, then timed.

    python benchmarks/bench_sparse.py [--sizes 20,24] [--curves bn254,bls12_381] [--json FILE]

Synthetic matrices of the shape of a Filecoin circuit: 2.4 entries a row in A, 1.0 in B, 6 of 10 coefficients 1, 2 of 10 -1,
the others from a dictionary of 60. Columns are either anywhere (`spread`) or within 2^12 of the row (`near`), as where
a circuit's wires are numbered as its constraints use them. Milliseconds are medians between events on the device; `bound`
is what the entries, the rows and one 32-byte sector for each entry move at `--bandwidth`. The quotient is that of a
prepared key: from a pinned witness (upload, product, four transforms), alone and in a row as in `bench_quotient.py`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pinzk
from pinzk._core import cpu
from pinzk._core.device import Device, DeviceVec, Stream
from pinzk._core.memory import PinnedVec
from pinzk.curves import Curve, Words
from pinzk.stages import quotient
from pinzk.stages.device_quotient import DeviceQuotient
from pinzk.stages.device_sparse import DeviceSparse, to_montgomery

DENSITY = {"a": 2.4, "b": 1.0}


def random_scalars(curve: Curve, n: int) -> Words:
    rows = np.random.default_rng(n).integers(0, 1 << 64, size=(n, 4), dtype=np.uint64)
    rows[:, 3] &= np.uint64((1 << (curve.fr.modulus.bit_length() - 193)) - 1)
    return rows


def matrix(curve: Curve, n: int, density: float, near: bool) -> tuple[np.ndarray, np.ndarray, Words]:
    draw, r = np.random.default_rng(round(density * 10)), curve.fr.modulus
    indptr = np.zeros(n + 1, np.uint64)
    np.cumsum(draw.poisson(density, n), out=indptr[1:])
    nnz = int(indptr[-1])
    if near:
        row = np.repeat(np.arange(n), np.diff(indptr).astype(np.int64))
        indices = ((row + draw.integers(-4096, 4096, nnz)) % n).astype(np.uint32)
    else:
        indices = draw.integers(0, n, nnz, dtype=np.uint32)
    palette = [1] * 12 + [r - 1] * 4
    others = [int(x) for x in draw.integers(2, 1 << 62, 60)]
    values = curve.fr.encode_canonical([c * (1 << 512) % r for c in palette + others])
    common = draw.integers(0, 16, nnz, dtype=np.uint8)
    return (
        indptr,
        indices,
        values[np.where(draw.random(nnz) < 0.8, common, draw.integers(16, 76, nnz, dtype=np.uint8))],
    )


def milliseconds(run: Callable[[], None], stream: Stream, repeats: int) -> float:
    times = []
    for _ in range(repeats + 1):
        begin = stream.record()
        run()
        end = stream.record()
        end.synchronize()
        times.append(end.elapsed_ms(begin))
    return statistics.median(times[1:])


def down(v: DeviceVec, stream: Stream) -> PinnedVec:
    out = PinnedVec(v.elem, len(v))
    v.download(out, stream)
    stream.synchronize()
    return out


def check(got: DeviceVec, want: Words, stream: Stream, what: str) -> None:
    host = down(got, stream)
    assert np.array_equal(host.borrow().numpy(), want), f"{what} differs from the CPU"
    host.release()


def size(curve: Curve, log_n: int, near: bool, args: argparse.Namespace) -> dict[str, Any]:
    fr, n, device = curve.fr, 1 << log_n, Device("cuda")
    stream, uploads = Stream(device), Stream(device)
    witness = random_scalars(curve, n)
    pinned, w = PinnedVec.from_array(fr, witness), DeviceVec(fr, n, device)
    w.upload(pinned, stream)
    montgomery = to_montgomery(w, stream)
    result: dict[str, Any] = {"curve": curve.name, "log_n": log_n, "columns": "near" if near else "spread"}
    result["upload_ms"] = milliseconds(lambda: w.upload(pinned, stream), stream, args.repeats)
    result["to_montgomery_ms"] = milliseconds(
        lambda: to_montgomery(w, stream).release(), stream, args.repeats
    )
    matrices: dict[str, DeviceSparse] = {}
    evaluations = []
    out = DeviceVec(fr, n, device)
    out.commit(n)
    for name, density in DENSITY.items():
        indptr, indices, values = matrix(curve, n, density, near)
        m = matrices[name] = DeviceSparse(curve, indptr, indices, values, device, stream)
        want = cpu.sparse_rows(fr, indptr, indices, values, witness)
        m.times(montgomery)(out, 0, stream)
        check(out, want, stream, f"{curve.name} 2^{log_n}: {name}")
        evaluations.append(want)
        traffic = m.nbytes + 32 * n + 32 * m.nnz
        result[name] = {
            "nnz": m.nnz,
            "ms": milliseconds(lambda m=m: m.times(montgomery)(out, 0, stream), stream, args.repeats),  # type: ignore[misc]
            "matrix_bytes": m.nbytes,
            "bound_ms": traffic / args.bandwidth / 1e6,
        }
    out.release()

    domain = pinzk.Domain(curve, log_n, root="bellman", device="cpu")
    h = DeviceQuotient(domain, device, uploads=uploads, stream=stream)

    def start() -> DeviceVec:
        w = DeviceVec(fr, n, device)
        w.upload(pinned, uploads)
        stream.wait(uploads.record())
        form = to_montgomery(w, stream)
        out = h.prepared(matrices["a"].times(form), matrices["b"].times(form))
        w.release()
        form.release()
        return out

    want = cpu.from_montgomery(fr, quotient.prepared(domain, *evaluations))
    first = start()
    check(first, want, stream, f"{curve.name} 2^{log_n}: the quotient")
    first.release()
    alone = []
    for _ in range(args.repeats):
        begin = time.perf_counter()
        start().release()
        stream.synchronize()
        alone.append(1e3 * (time.perf_counter() - begin))
    result["quotient_alone_ms"] = statistics.median(alone)
    ends = []
    for _ in range(12):
        start().release()
        ends.append(stream.record())
    ends[-1].synchronize()
    result["quotient_in_a_row_ms"] = ends[-1].elapsed_ms(ends[1]) / 10
    h.close()
    for m in matrices.values():
        m.release()
    for v in (w, montgomery, pinned):
        v.release()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="20,24", help="log2 of rows and columns")
    parser.add_argument("--curves", default="bn254,bls12_381")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--bandwidth", type=float, default=4800, help="of the device memory, GB/s")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    results = []
    print(f"{Device('cuda').name}; ms")
    for curve in (Curve.named(name) for name in args.curves.split(",")):
        for log_n in map(int, args.sizes.split(",")):
            for near in (True, False):
                r = size(curve, log_n, near, args)
                results.append(r)
                parts = ", ".join(f"{x} w {r[x]['ms']:.3f} (bound {r[x]['bound_ms']:.3f})" for x in DENSITY)
                print(
                    f"{curve.name} 2^{log_n} {r['columns']}, checked: {parts}, to Montgomery {r['to_montgomery_ms']:.3f}, "
                    f"upload of w {r['upload_ms']:.2f}; quotient alone {r['quotient_alone_ms']:.2f}, "
                    f"in a row {r['quotient_in_a_row_ms']:.2f}",
                    flush=True,
                )
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"device": Device("cuda").name, "results": results}, f, indent=1)


if __name__ == "__main__":
    main()
