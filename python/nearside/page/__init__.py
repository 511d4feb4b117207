"""Pages that open from disk: one HTML file each, with its style and its plots in it."""
