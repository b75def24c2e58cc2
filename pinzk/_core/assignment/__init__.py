# SPDX-License-Identifier: Apache-2.0
"""What synthesis leaves behind: values of constraints and variables in pinned memory, and which variables occur."""

from .capacity import Capacity, CapacityHints, capacity_hints
from .densities import DensityTracker, Variable
from .proving import Evaluations, ProvingAssignment

__all__ = [
    "Capacity",
    "CapacityHints",
    "DensityTracker",
    "Evaluations",
    "ProvingAssignment",
    "Variable",
    "capacity_hints",
]
