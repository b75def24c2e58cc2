# SPDX-License-Identifier: Apache-2.0
"""File formats: bytes to plain records and back, nothing else."""
