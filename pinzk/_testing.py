# SPDX-License-Identifier: Apache-2.0
"""Private doors for tests: the toy curve. Nothing here is part of the public interface."""

from __future__ import annotations

from .curves import _curve

# 97 points over F_79, and 97 of the 6111 points over F_79^2: cuda/toy.cuh
TOY = _curve("toy", "toy", 97, 79, (1, 2), ((0, 16), (54, 25)))
