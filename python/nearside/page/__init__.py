# SPDX-License-Identifier: Apache-2.0
"""Pages that open from disk: self-contained HTML files with style and plots."""
