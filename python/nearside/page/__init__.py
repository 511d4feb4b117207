"""Pages that open from disk: self-contained HTML files with style and plots."""
