# SPDX-License-Identifier: Apache-2.0
"""Circuits of any size without a compiler: a chain of products with full-width values, and bits beside it."""

from __future__ import annotations

import secrets

import numpy as np

from pinzk.curves import Curve, Words
from pinzk.formats.r1cs import R1csFile
from pinzk.formats.sparse import SparseRows
from pinzk.groth16.constraints import R1cs

N_PUBLIC = 1
SPARE = 4  # rows left for the public wires, so that a circuit fills its domain


def circuit(curve: Curve, log_n: int, bits: float = 0.0) -> tuple[R1cs, Words]:
    """A circuit that fills a domain of 2**log_n, and a witness for it.

    Wires: one, a public one, the bits, a chain v. Rows: bit * (bit - 1) = 0, then (v_i + 3 v_(i+1)) v_(i+1) = v_(i+2).

    Parameters
    ----------
    curve : Curve
    log_n : int
    bits : float
        Share of the rows that are bits.

    Returns
    -------
    r1cs : R1cs
    witness : ndarray of uint64, shape (n_wires, 4)
        Canonical.
    """
    r, fr = curve.fr.modulus, curve.fr
    n_rows = (1 << log_n) - SPARE
    n_bits = int(bits * n_rows)
    n_chain = n_rows - n_bits
    chain = [secrets.randbelow(r), secrets.randbelow(r)]
    for i in range(n_chain):
        chain.append((chain[i] + 3 * chain[i + 1]) * chain[i + 1] % r)
    first, first_v = N_PUBLIC + 1, N_PUBLIC + 1 + n_bits
    n_wires = first_v + len(chain)
    w = np.zeros((n_wires, 4), dtype=np.uint64)
    w[0, 0], w[1, 0] = 1, 7
    w[first:first_v, 0] = np.random.default_rng(1).integers(0, 2, n_bits, dtype=np.uint64)
    w[first_v:] = fr.encode_canonical(chain)

    bit, v = np.arange(first, first_v), first_v + np.arange(n_chain)
    one, minus_one, three = 1, r - 1, 3
    a = _rows(curve, ([bit], [one]), ([v, v + 1], [one, three]))
    b = _rows(curve, ([bit, 0 * bit], [one, minus_one]), ([v + 1], [one]))
    c = _rows(curve, ([bit[:0]], [one]), ([v + 2], [one]), empty=n_bits)
    file = R1csFile(curve, n_wires, 0, N_PUBLIC, n_wires - N_PUBLIC - 1, n_rows, a, b, c)
    return R1cs(file), w


def _rows(curve: Curve, *blocks: tuple[list[np.ndarray], list[int]], empty: int = 0) -> SparseRows:
    # every block: rows of as many entries, column arrays and one coefficient for each; `empty` rows before all
    indices, values, lengths = [], [], [np.zeros(empty, dtype=np.uint64)]
    for columns, coefficients in blocks:
        indices.append(np.stack(columns, axis=1).reshape(-1))
        scaled = curve.fr.encode((k << 256) % curve.fr.modulus for k in coefficients)
        values.append(np.tile(scaled, (len(columns[0]), 1)))
        lengths.append(np.full(len(columns[0]), len(columns), dtype=np.uint64))
    indptr = np.concatenate([[np.uint64(0)], np.cumsum(np.concatenate(lengths), dtype=np.uint64)])
    return SparseRows(
        indptr.astype(np.uint64), np.concatenate(indices).astype(np.uint32), np.concatenate(values)
    )
