# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Pairings of both curves on the host, off the GIL, and what a Groth16 verifier prepares once per key.

Points are affine ``uint64`` rows as in `pinzk.curves`. Their coordinates must be reduced and the points on their curves
(`pinzk._core.cpu.first_bad_point`); a function that also asks for the subgroup says so. Values in the target group are
arrays of shape (12, limbs): Fp12 = Fp6[w] / (w^2 - v), Fp6 = Fp2[v] / (v^3 - xi), Fp2 = Fp[u] / (u^2 + 1), low parts first,
with xi = 9 + u on BN254 and 1 + u on BLS12-381.
"""

import numpy as np

cimport cython
from libc.stdint cimport uint64_t
from libcpp cimport bool as cbool


cdef extern from "python_glue.hpp" namespace "pinzk::cpu" nogil:
    void translate_exception()


cdef extern from "pairing.hpp" namespace "pinzk::pairing" nogil:
    cdef enum class Verdict:
        valid
        b_not_in_subgroup
        equation_fails

    cdef cppclass Groth16Key:
        Verdict check(const uint64_t*, const uint64_t*, const uint64_t*, const uint64_t*) except +translate_exception
        void alpha_beta(uint64_t*)

    cdef cppclass PairingOps:
        void product(const uint64_t*, const uint64_t*, size_t, uint64_t*) except +translate_exception
        cbool is_one(const uint64_t*)
        cbool in_g2(const uint64_t*) except +translate_exception
        Groth16Key* prepare(const uint64_t*, const uint64_t*, const uint64_t*, const uint64_t*) except +translate_exception

    const PairingOps* bn254_pairing()
    const PairingOps* bls12_381_pairing()


cdef const PairingOps* _ops(curve) except NULL:
    if curve.name == "bn254":
        return bn254_pairing()
    if curve.name == "bls12_381":
        return bls12_381_pairing()
    raise ValueError(f"no pairing for curve {curve.name!r}")


cdef const uint64_t* _points(const uint64_t[:, ::1] a, Py_ssize_t n, group, str name) except? NULL:
    if a.shape[0] != n or a.shape[1] != group.limbs:
        raise ValueError(f"{name} must have shape ({n}, {group.limbs}), not ({a.shape[0]}, {a.shape[1]})")
    return &a[0, 0] if n else NULL


def pairing(curve, const uint64_t[:, ::1] g1, const uint64_t[:, ::1] g2):
    """Product of the pairings of points in the subgroups.

    Parameters
    ----------
    curve : Curve
    g1 : ndarray of uint64, shape (n, curve.g1.limbs)
    g2 : ndarray of uint64, shape (n, curve.g2.limbs)

    Returns
    -------
    ndarray of uint64, shape (12, limbs)
        The product of e(g1[i], g2[i]), where e is the ate pairing to the power (p^12 - 1) / r * k, with k as in
        `_core/pairing_loops/final_exponentiation.hpp`: 2z(6z^2 + 3z + 1) on BN254, 3 on BLS12-381.
    """
    cdef const PairingOps* ops = _ops(curve)
    cdef size_t n = g1.shape[0]
    cdef const uint64_t* p = _points(g1, n, curve.g1, "g1")
    cdef const uint64_t* q = _points(g2, n, curve.g2, "g2")
    cdef uint64_t[:, ::1] out = np.empty((12, curve.fp.limbs), dtype=np.uint64)
    with nogil:
        ops.product(p, q, n, &out[0, 0])
    return np.asarray(out)


def pairing_product_is_one(curve, const uint64_t[:, ::1] g1, const uint64_t[:, ::1] g2):
    """Whether the product of e(g1[i], g2[i]) is one; arguments as for `pairing`."""
    cdef const uint64_t[:, ::1] value = pairing(curve, g1, g2)
    return _ops(curve).is_one(&value[0, 0])


def in_g2(curve, const uint64_t[:, ::1] point):
    """Whether one point of the twist has order r or is infinity: the test that `PreparedKey.check` makes of b."""
    cdef const PairingOps* ops = _ops(curve)
    cdef const uint64_t* q = _points(point, 1, curve.g2, "point")
    cdef cbool answer
    with nogil:
        answer = ops.in_g2(q)
    return answer


@cython.final
cdef class PreparedKey:
    """e(alpha, beta) and the Miller lines of gamma and delta, made once per verification key. Immutable, any thread.

    Parameters
    ----------
    curve : Curve
    alpha_1, beta_2, gamma_2, delta_2 : ndarray of uint64, shape (1, limbs)
        In their subgroups.
    """

    cdef Groth16Key* key
    cdef object curve

    def __cinit__(self, curve, const uint64_t[:, ::1] alpha_1, const uint64_t[:, ::1] beta_2,
                  const uint64_t[:, ::1] gamma_2, const uint64_t[:, ::1] delta_2):
        cdef const PairingOps* ops = _ops(curve)
        cdef const uint64_t* alpha = _points(alpha_1, 1, curve.g1, "alpha_1")
        cdef const uint64_t* beta = _points(beta_2, 1, curve.g2, "beta_2")
        cdef const uint64_t* gamma = _points(gamma_2, 1, curve.g2, "gamma_2")
        cdef const uint64_t* delta = _points(delta_2, 1, curve.g2, "delta_2")
        self.curve = curve
        with nogil:
            self.key = ops.prepare(alpha, beta, gamma, delta)

    def __dealloc__(self):
        del self.key

    def __reduce__(self):
        raise TypeError("a PreparedKey cannot be pickled; make it again from the verification key")

    def alpha_beta(self):
        """e(alpha, beta), shape (12, limbs), in the convention of `pairing`."""
        cdef uint64_t[:, ::1] out = np.empty((12, self.curve.fp.limbs), dtype=np.uint64)
        self.key.alpha_beta(&out[0, 0])
        return np.asarray(out)

    def check(self, const uint64_t[:, ::1] a, const uint64_t[:, ::1] b, const uint64_t[:, ::1] c,
              const uint64_t[:, ::1] inputs):
        """Groth16's equation e(a, b) = e(alpha, beta) e(inputs, gamma) e(c, delta).

        Parameters
        ----------
        a, c, inputs : ndarray of uint64, shape (1, curve.g1.limbs)
            In the subgroup.
        b : ndarray of uint64, shape (1, curve.g2.limbs)
            On the twist; its subgroup is tested here, at no cost.

        Returns
        -------
        {"valid", "subgroup", "equation"}
            The first thing that fails, if one does: b is not in the subgroup, or the equation does not hold.
        """
        cdef const uint64_t* pa = _points(a, 1, self.curve.g1, "a")
        cdef const uint64_t* pb = _points(b, 1, self.curve.g2, "b")
        cdef const uint64_t* pc = _points(c, 1, self.curve.g1, "c")
        cdef const uint64_t* pi = _points(inputs, 1, self.curve.g1, "inputs")
        cdef Verdict verdict
        with nogil:
            verdict = self.key.check(pa, pb, pc, pi)
        if verdict == Verdict.valid:
            return "valid"
        return "subgroup" if verdict == Verdict.b_not_in_subgroup else "equation"
