# SPDX-License-Identifier: Apache-2.0
"""Types of the pairings; `pairing.pyx` documents each function."""

from typing import Literal, final

from pinzk.curves import Curve, Words

def pairing(curve: Curve, g1: Words, g2: Words) -> Words: ...
def pairing_product_is_one(curve: Curve, g1: Words, g2: Words) -> bool: ...
def in_g2(curve: Curve, point: Words) -> bool: ...

@final
class PreparedKey:
    def __new__(
        cls, curve: Curve, alpha_1: Words, beta_2: Words, gamma_2: Words, delta_2: Words
    ) -> PreparedKey: ...
    def alpha_beta(self) -> Words: ...
    def check(
        self, a: Words, b: Words, c: Words, inputs: Words
    ) -> Literal["valid", "subgroup", "equation"]: ...
