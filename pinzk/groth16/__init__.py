# SPDX-License-Identifier: Apache-2.0
"""Groth16: keys, witnesses, prover, verifier, set-up."""
