# SPDX-License-Identifier: Apache-2.0
"""The accuracy of the fast model: the same workloads on it and on the RTL, compared."""
