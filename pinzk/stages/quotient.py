# SPDX-License-Identifier: Apache-2.0
"""The quotient polynomial h = (a b - c) / Z, in the form each key format wants it: on the CPU.

The same three pipelines on a GPU: `pinzk.stages.device_quotient`.
"""

from __future__ import annotations

from .._core import cpu
from ..curves import Words
from .ntt import Domain


def snarkjs(domain: Domain, a: Words, b: Words) -> Words:
    """Scalars of the H query of a snarkjs key: a b - c on the odd coset.

    There is no matrix C in such a key: c = a b on the domain itself. The division by Z, a constant on the odd coset, is
    inside the key's points.

    Parameters
    ----------
    domain : Domain
        With root "snarkjs".
    a, b : ndarray of uint64, shape (n, 4)
        Evaluations of the constraints, Montgomery form, natural order. **Overwritten.**

    Returns
    -------
    ndarray of uint64, shape (n, 4)
        Montgomery form; the memory of `a`.
    """
    fr, threads = domain.curve.fr, domain.threads
    c = cpu.multiply(fr, a, b, threads=threads)
    for v in (a, b, c):
        domain.to_coset(v)
    return cpu.multiply_subtract(fr, a, b, c, a, threads=threads)


def bellman(domain: Domain, a: Words, b: Words, c: Words) -> Words:
    """Scalars of the H query of a bellman key: the coefficients of (a b - c) / Z.

    Parameters
    ----------
    domain : Domain
        With root "bellman".
    a, b, c : ndarray of uint64, shape (n, 4)
        Evaluations of the constraints, Montgomery form, natural order. **Overwritten.**

    Returns
    -------
    ndarray of uint64, shape (n - 1, 4)
        Montgomery form; in the memory of `a`. The quotient has degree n - 2, so there is no n-th coefficient.
    """
    fr, threads = domain.curve.fr, domain.threads
    for v in (a, b, c):
        domain.to_coset(v)
    cpu.multiply_subtract(fr, a, b, c, a, threads=threads)
    z = pow(domain.default_shift, domain.size, fr.modulus) - 1  # Z is x^n - 1: one value on the whole coset
    domain.from_coset(a, pow(z, -1, fr.modulus))
    return a[: domain.size - 1]


def prepared(domain: Domain, a: Words, b: Words) -> Words:
    """Scalars of the H query of a prepared key: a b on the coset.

    Such a key has -c / Z inside its query over the wires (once C is known, [C_i(tau) Z(tau) / delta] / z is one point a
    wire), and 1 / z, z = shift**n - 1, inside its H points, which are of the coset's Lagrange basis. So there is no c and
    four transforms do. Nothing here shows whether a b = c: the proof's self-check does.

    Parameters
    ----------
    domain : Domain
        With the root of the key.
    a, b : ndarray of uint64, shape (n, 4)
        Evaluations of the constraints, Montgomery form, natural order. **Overwritten.**

    Returns
    -------
    ndarray of uint64, shape (n, 4)
        Montgomery form; the memory of `a`.
    """
    for v in (a, b):
        domain.to_coset(v)
    return cpu.multiply(domain.curve.fr, a, b, a, threads=domain.threads)
