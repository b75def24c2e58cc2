# SPDX-License-Identifier: Apache-2.0
"""The steps of a proof, one a file: transforms, multi-scalar multiplication, the quotient polynomial."""
