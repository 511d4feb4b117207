# SPDX-License-Identifier: Apache-2.0
"""Claims: every figure that the project states about itself, with a bound, as a repeatable measurement."""

from nearside.claims.registry import Claim, Context, Measured, Published, all_claims, at_least, at_most, claim, find

__all__ = ["Claim", "Context", "Measured", "Published", "all_claims", "at_least", "at_most", "claim", "find"]
