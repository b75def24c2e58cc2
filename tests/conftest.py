# SPDX-License-Identifier: Apache-2.0
"""Settings of the whole test suite: hypothesis is derandomised, so that a run says the same thing twice."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", deadline=None, max_examples=2000)  # by hand, for new counterexamples
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
