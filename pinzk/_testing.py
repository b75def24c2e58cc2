# SPDX-License-Identifier: Apache-2.0
"""The test door: fixed blinding, and a toy curve. Opens only with PINZK_TEST_DOOR=1; proofs made here leak the witness.

PINZK_TEST_DOOR=1 python -m pinzk._testing KEY WTNS r s proof.json public.json
"""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .curves import Field, _curve
from .groth16 import prover as _prover
from .groth16.keys import ProvingKey

_lock = threading.RLock()


@contextmanager
def fixed_blinding(r: int, s: int) -> Iterator[None]:
    """Every proof of this process inside the block, on any thread, uses these r and s.

    Raises
    ------
    RuntimeError
        ``PINZK_TEST_DOOR`` is not ``1``.
    ValueError
        r or s is not a canonical scalar (judged when a proof begins).
    """
    if os.environ.get("PINZK_TEST_DOOR") != "1":
        raise RuntimeError("fixed blinding is for tests: set PINZK_TEST_DOOR=1 to open this door")
    warnings.warn("r and s are fixed: a proof made now reveals its witness", stacklevel=3)

    def fixed(fr: Field) -> tuple[int, int]:
        if not (0 <= r < fr.modulus and 0 <= s < fr.modulus):
            raise ValueError(f"r and s must be in [0, order of {fr.name})")
        return r, s

    with _lock:
        drawn, _prover._blinding = _prover._blinding, fixed
        try:
            yield
        finally:
            _prover._blinding = drawn


TOY = _curve("toy", "toy", 97, 79, (1, 2), ((0, 16), (54, 25)))
"""y^2 = x^3 + 3 over F_79, 97 points, and its like over F_79^2 (`cuda/toy.cuh`): small enough for every case."""


def _main(argv: list[str]) -> int:
    if len(argv) != 6:
        print("usage: python -m pinzk._testing KEY WTNS r s proof.json public.json", file=sys.stderr)
        return 2
    key_path, witness_path, r, s, proof_path, public_path = argv
    with fixed_blinding(int(r), int(s)), _prover.Prover(ProvingKey.load(key_path)) as prover:
        result = prover.prove(witness_path)
    result.proof.save(proof_path)
    Path(public_path).write_text(json.dumps([str(x) for x in result.public], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
