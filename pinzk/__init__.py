# SPDX-License-Identifier: Apache-2.0
"""pinzk: Groth16 provers on GPUs from Python, with owned pinned memory."""

from importlib.metadata import version as _version

from ._core.assignment import ProvingAssignment
from ._core.device import Device, Stream
from ._core.memory import MemoryBudget, PinnedBacking, PinnedPool, PinnedVec
from .curves import BLS12_381, BN254
from .errors import PinzkError
from .groth16.constraints import R1cs
from .groth16.keys import ProvingKey
from .groth16.pending import PendingProof, prove_start
from .groth16.proof import Proof
from .groth16.prover import Prover
from .groth16.verifier import verify
from .groth16.verifying_key import VerifyingKey
from .groth16.witness import Witness
from .stages.msm import msm
from .stages.ntt import Domain

__version__ = _version("pinzk")

__all__ = [
    "BN254",
    "BLS12_381",
    "MemoryBudget",
    "PinnedPool",
    "PinnedBacking",
    "PinnedVec",
    "ProvingAssignment",
    "R1cs",
    "ProvingKey",
    "VerifyingKey",
    "Witness",
    "Proof",
    "Prover",
    "PendingProof",
    "prove_start",
    "verify",
    "msm",
    "Domain",
    "Device",
    "Stream",
    "PinzkError",
    "__version__",
]
