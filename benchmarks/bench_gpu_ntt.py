# SPDX-License-Identifier: Apache-2.0
"""The transforms of ``cuda/ntt.cu`` on a GPU: checked against the CPU backend in the same run, then timed.

    python benchmarks/bench_gpu_ntt.py [--max 26] [--json FILE]

Every size from 2^3 is run both ways, the small ones over three vectors too. To 2^20 the forward transform equals the CPU's
element by element and the way back restores the input; above, one value is evaluated from the coefficients and the way back
is compared element by element. Device memory is poisoned first. Milliseconds are medians between events on the device, data
and tables resident, without permutation. `bound` is the time of the products alone at the rate that `--rate` names.

Speaks to the driver itself, because the library has no launches yet.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import struct
from typing import Any

import numpy as np
from cuda.bindings import driver as cu

import pinzk
from pinzk import kernels
from pinzk._core import cpu
from pinzk.curves import Curve, Words

TILE_LOG, THREADS = 10, 128
KINDS = [(pinzk.BN254, "snarkjs"), (pinzk.BLS12_381, "snarkjs"), (pinzk.BLS12_381, "bellman")]


def check(result: tuple) -> Any:
    if int(result[0]):
        raise RuntimeError(f"driver: {result[0]}")
    return result[1] if len(result) == 2 else result[1:]


class Memory:
    """Device bytes, poisoned."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.ptr = int(check(cu.cuMemAlloc(nbytes)))
        check(cu.cuMemsetD8(self.ptr, 0xA5, nbytes))

    def put(self, array: np.ndarray) -> Memory:
        check(cu.cuMemcpyHtoD(self.ptr, array.ctypes.data, array.nbytes))
        return self

    def get(self, out: np.ndarray) -> np.ndarray:
        check(cu.cuMemcpyDtoH(out.ctypes.data, self.ptr, out.nbytes))
        return out

    def free(self) -> None:
        check(cu.cuMemFree(self.ptr))


class Module:
    def __init__(self, image: bytes) -> None:
        self.handle = check(cu.cuModuleLoadData(image))
        self.functions: dict[str, Any] = {}

    def launch(
        self, name: str, grid: int, block: int, shared: int, *args: Memory | int | bytes | ctypes.c_uint32
    ) -> None:
        if name not in self.functions:
            self.functions[name] = check(cu.cuModuleGetFunction(self.handle, name.encode()))
        cells: list[Any] = []
        for a in args:
            if isinstance(a, bytes):
                cells.append(ctypes.create_string_buffer(a, len(a)))
            else:
                cells.append(
                    ctypes.c_uint64(a.ptr)
                    if isinstance(a, Memory)
                    else a
                    if isinstance(a, ctypes.c_uint32)
                    else ctypes.c_uint64(a)
                )
        pointers = (ctypes.c_void_p * len(cells))(*[ctypes.addressof(c) for c in cells])
        check(
            cu.cuLaunchKernel(
                self.functions[name], grid, 1, 1, block, 1, 1, shared, 0, ctypes.addressof(pointers), 0
            )
        )


def plan(log_n: int) -> list[int]:
    """Levels of each pass, outermost first: steps of three levels, spread evenly; one step of the first pass is narrower."""
    if log_n <= TILE_LOG:
        return [log_n]
    steps = -(-log_n // 3)
    passes = -(-steps // 3)
    levels = [3 * (steps // passes + (i < steps % passes)) for i in range(passes)]
    levels[0] -= 3 * steps - log_n
    return levels


def products(log_n: int) -> float:
    """Products of one transform, an element: 4/8 a radix-8 step, 2/8 radix 4; 7/8 behind a step, 1 behind a pass."""
    total = 0.0
    levels = plan(log_n)
    for i, pass_levels in enumerate(levels):
        narrow = (pass_levels - 1) % 3 + 1
        steps = -(-pass_levels // 3)
        total += (steps - 1) * 0.5 + {1: 0, 2: 0.25, 3: 0.5}[narrow]
        if steps > 1:  # behind the first step of b levels: 1 - 1/2^b; behind the others 7/8
            total += 1 - 0.5**narrow + (steps - 2) * 0.875
        total += i + 1 < len(levels)
    return total


class Transform:
    """One root's transforms."""

    def __init__(self, module: Module, curve: Curve, log_n: int, root: int) -> None:
        self.module, self.curve, self.log_n = module, curve, log_n
        r, n = curve.fr.modulus, 1 << log_n
        self.levels = plan(log_n)
        stride, step = 1 << max(TILE_LOG - log_n, 0), pow(root, max(n >> TILE_LOG, 1), r)
        self.row = self.fixed([pow(step, j // stride, r) for j in range(1 << TILE_LOG)])
        w_8, half = pow(root, n >> 3, r), (r + 1) // 2
        back = pow(w_8, -1, r)
        self.step = self.fixed([w_8 * w_8 % r, (w_8 + back) * half % r, (w_8 - back) * half % r])
        self.twiddles, rest = [], log_n
        for levels in self.levels[:-1]:
            self.twiddles.append(self.table(pow(root, 1 << (log_n - rest), r), levels, rest - levels))
            rest -= levels

    def fixed(self, values: list[int]) -> Memory:
        r = self.curve.fr.modulus
        raw = b"".join(w.to_bytes(32, "little") + ((w << 256) // r).to_bytes(32, "little") for w in values)
        return Memory(len(raw)).put(np.frombuffer(raw, dtype=np.uint8))

    def table(self, root: int, levels: int, log_q: int) -> Memory:
        fr, n = self.curve.fr, 1 << (levels + log_q)
        squares = [root]
        for _ in range(levels + log_q):
            squares.append(squares[-1] ** 2 % fr.modulus)
        constants = fr.encode(squares)
        on_device, out = Memory(constants.nbytes).put(constants), Memory(64 * n)
        words = [ctypes.c_uint32(levels), ctypes.c_uint32(log_q)]
        self.module.launch("ntt_twiddles", -(-n // 256), 256, 0, out, on_device, *words, n)
        check(cu.cuCtxSynchronize())
        on_device.free()
        return out

    def passes(self, vectors: int) -> list[tuple[bool, int, bytes]]:
        out, rest = [], self.log_n
        for i, levels in enumerate(self.levels):
            rest -= levels
            columns = (vectors << self.log_n) >> levels
            table = self.twiddles[i].ptr if rest else 0
            layout = struct.pack("<iiQQQQ", levels, rest, columns, self.row.ptr, self.step.ptr, table)
            out.append((rest == 0, -(-columns // (1 << (TILE_LOG - levels))), layout))
        return out

    def dif(self, data: Memory, vectors: int = 1) -> None:
        for inner, grid, layout in self.passes(vectors):
            name = "ntt_dif_inner" if inner else "ntt_dif"
            self.module.launch(name, grid, THREADS, 32 << TILE_LOG, data, layout, ctypes.c_uint32(inner))

    def dit(self, data: Memory, vectors: int = 1) -> None:
        passes = self.passes(vectors)
        for i in reversed(range(len(passes))):
            inner, grid, layout = passes[i]
            name = "ntt_dit_inner" if inner else "ntt_dit"
            self.module.launch(name, grid, THREADS, 32 << TILE_LOG, data, layout, ctypes.c_uint32(i == 0))

    def free(self) -> None:
        for m in (self.row, self.step, *self.twiddles):
            m.free()


def middle(down: Transform, up: Transform, data: Memory, factors: Memory, vectors: int = 1) -> None:
    """Values on the domain to values on its coset: the quotient's round trip, innermost passes fused."""
    first, last = down.passes(vectors), up.passes(vectors)
    module, shared = down.module, 32 << TILE_LOG
    for _, grid, layout in first[:-1]:
        module.launch("ntt_dif", grid, THREADS, shared, data, layout, ctypes.c_uint32(0))
    _, grid, layout = first[-1]
    single = ctypes.c_uint32(len(last) == 1)
    module.launch(
        "ntt_middle", grid, THREADS, shared, data, layout, last[-1][2], factors, 1 << down.log_n, single
    )
    for i in reversed(range(len(last) - 1)):
        _, grid, layout = last[i]
        module.launch("ntt_dit", grid, THREADS, shared, data, layout, ctypes.c_uint32(i == 0))


def milliseconds(run: Any, repeats: int = 9) -> float:
    begin, end = check(cu.cuEventCreate(0)), check(cu.cuEventCreate(0))
    run()
    times = []
    for _ in range(repeats):
        check(cu.cuEventRecord(begin, 0))
        run()
        check(cu.cuEventRecord(end, 0))
        check(cu.cuEventSynchronize(end))
        times.append(check(cu.cuEventElapsedTime(begin, end)))
    return statistics.median(times)


def random_rows(curve: Curve, n: int, seed: int) -> Words:
    rows = np.random.default_rng(seed).integers(0, 1 << 64, size=(n, 4), dtype=np.uint64)
    rows[:, 3] &= np.uint64((1 << (curve.fr.modulus.bit_length() - 193)) - 1)
    return rows


def horner(fr: Any, rows: Words, point: int) -> int:
    """The polynomial's value, the same residue as its coefficients: products natively, the sum by columns of words."""
    powers = cpu.powers(fr, point, len(rows))
    halves = cpu.multiply(fr, rows, powers).view(np.uint32).sum(axis=0, dtype=np.uint64)
    return sum(int(h) << 32 * i for i, h in enumerate(halves)) % fr.modulus


def run_size(
    module: Module, curve: Curve, root: str, log_n: int, vectors: int, timed: bool, rate: float
) -> dict:
    fr, n = curve.fr, 1 << log_n
    domain = pinzk.Domain(curve, log_n, root=root, device="cpu")
    forward = Transform(module, curve, log_n, domain.omega)
    backward = Transform(module, curve, log_n, pow(domain.omega, -1, fr.modulus))
    rows = random_rows(curve, vectors * n, log_n)
    data = Memory(rows.nbytes).put(rows)
    forward.dif(data, vectors)
    got = data.get(np.empty_like(rows))
    assert cpu.first_unreduced(fr, got) is None, "a result is not below the modulus"
    if log_n <= 20:
        for v in range(vectors):
            want = domain.ntt(rows[v * n : (v + 1) * n])
            cpu.bit_reverse(fr, want)
            assert np.array_equal(got[v * n : (v + 1) * n], want), (
                f"{curve.name} 2^{log_n}: differs from the CPU"
            )
    else:
        k = n // 3
        place = int(format(k, f"0{log_n}b")[::-1], 2)
        assert (
            horner(fr, rows, pow(domain.omega, k, fr.modulus))
            == fr.decode_canonical(got[place : place + 1])[0]
        )
    backward.dit(data, vectors)
    back = data.get(np.empty_like(rows))
    scaled = cpu.multiply(fr, rows, np.tile(fr.encode([n % fr.modulus]), (vectors * n, 1)))
    assert np.array_equal(back, scaled), f"{curve.name} 2^{log_n}: the way back"
    out = {"curve": curve.name, "root": root, "log_n": log_n, "vectors": vectors, "passes": forward.levels}
    if log_n < curve.fr.two_adicity and log_n <= 24 and vectors == 1:
        data.put(rows)
        factors = cpu.powers(fr, domain.default_shift, n, first=pow(n, -1, fr.modulus))
        cpu.bit_reverse(fr, factors)
        on_device = Memory(factors.nbytes).put(factors)
        middle(backward, forward, data, on_device)
        got = data.get(np.empty_like(rows))
        want = rows.copy()
        domain.to_coset(want)
        assert np.array_equal(got, want), f"{curve.name} 2^{log_n}: the round trip to the coset"
        if timed:
            out["to_coset_ms"] = milliseconds(lambda: middle(backward, forward, data, on_device))
        on_device.free()
    if timed:
        out["dif_ms"] = milliseconds(lambda: forward.dif(data, vectors))
        out["dit_ms"] = milliseconds(lambda: backward.dit(data, vectors))
        out["bound_ms"] = products(log_n) * n / rate / 1e6
    data.free()
    forward.free()
    backward.free()
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--max", type=int, default=26, help="largest log2 of the size")
    parser.add_argument(
        "--rate", type=float, default=79.0, help="products by a fixed operand, G/s of the whole GPU"
    )
    parser.add_argument("--json")
    args = parser.parse_args()
    check(cu.cuInit(0))
    device = check(cu.cuDeviceGet(0))
    check(cu.cuCtxSetCurrent(check(cu.cuDevicePrimaryCtxRetain(device))))
    attribute = cu.CUdevice_attribute
    major = check(cu.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    minor = check(cu.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
    name = check(cu.cuDeviceGetName(64, device)).split(b"\0")[0].decode()
    print(f"{name}, sm_{major}{minor}")
    results = []
    for curve, root in KINDS:
        image = kernels.build(kernels.Unit("ntt", curve.name), 10 * major + minor).image
        module = Module(image)
        small = [(k, v) for k in range(3, 15) for v in (1, 3)]
        for log_n, vectors in small:
            run_size(module, curve, root, log_n, vectors, False, args.rate)
        print(f"{curve.name} {root}: 2^3 to 2^14, one and three vectors, equal the CPU's")
        for log_n in range(15, args.max + 1):
            timed = log_n % 2 == 0 or log_n == 27
            result = run_size(module, curve, root, log_n, 1, timed, args.rate)
            results.append(result)
            if timed:
                print(
                    f"{curve.name} {root} 2^{log_n} {result['passes']} checked; dif {result['dif_ms']:.3f} ms, "
                    f"dit {result['dit_ms']:.3f}, to coset {result.get('to_coset_ms', float('nan')):.3f}, "
                    f"bound {result['bound_ms']:.3f}, ratio {result['dif_ms'] / result['bound_ms']:.2f}",
                    flush=True,
                )
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"device": name, "results": results}, f, indent=1)


if __name__ == "__main__":
    main()
