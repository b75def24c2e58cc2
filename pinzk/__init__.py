# SPDX-License-Identifier: Apache-2.0
"""pinzk: Groth16 provers on GPUs from Python, with owned pinned memory."""
