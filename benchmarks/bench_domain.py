# SPDX-License-Identifier: Apache-2.0
"""`Domain` on a GPU: what a call costs for each kind of array, beside the transform alone; each answer checked first.

python benchmarks/bench_domain.py [log_n ...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pinzk import BLS12_381, BN254, Domain
from pinzk._core.device import Device, DeviceVec, Stream
from pinzk._core.memory import PinnedVec
from pinzk.curves import Curve, Words


def rows(curve: Curve, n: int) -> Words:
    out = np.random.default_rng(n).integers(0, 1 << 64, size=(n, 4), dtype=np.uint64)
    out[:, 3] &= np.uint64((1 << (curve.fr.modulus.bit_length() - 193)) - 1)
    return out


def milliseconds(call: Callable[[], Any], times: int = 5) -> float:
    call()
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return 1000 * sorted(seconds)[times // 2]


def main() -> None:
    device = Device("cuda")
    print(f"{device.name}; milliseconds of a call, median of 5")
    for curve in (BN254, BLS12_381):
        for log_n in [int(x) for x in sys.argv[1:]] or [10, 16, 20]:
            start = time.perf_counter()
            domain = Domain(curve, log_n, root="snarkjs", device=device)
            made = time.perf_counter() - start
            v = rows(curve, domain.size)
            pinned, stream = PinnedVec.from_array(curve.fr, v), Stream(device)
            there = DeviceVec(curve.fr, domain.size, device)
            there.upload(pinned, stream)
            stream.synchronize()
            assert np.array_equal(domain.intt(domain.ntt(v)), v)
            if log_n <= 20:
                cpu = Domain(curve, log_n, root="snarkjs", device="cpu")
                assert np.array_equal(domain.coset_ntt(v), cpu.coset_ntt(v))
            kinds = {"DeviceVec": there, "PinnedVec": pinned, "ndarray": v}
            for kind, x in kinds.items():
                figures = " ".join(
                    f"{name} {milliseconds(lambda f=f, x=x: f(x)):.3f}"  # type: ignore[misc]
                    for name, f in (
                        ("ntt", domain.ntt),
                        ("intt", domain.intt),
                        ("coset_ntt", domain.coset_ntt),
                        ("coset_intt", domain.coset_intt),
                    )
                )
                print(f"{curve.name} 2^{log_n} {kind:9} {figures}", flush=True)
            print(f"{curve.name} 2^{log_n} making the domain {made:.3f} s")


if __name__ == "__main__":
    main()
