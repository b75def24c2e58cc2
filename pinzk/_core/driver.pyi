# SPDX-License-Identifier: Apache-2.0
"""Types of the driver door; it is documented in `driver.pyx`."""

def describe(code: int) -> tuple[str, str]: ...
