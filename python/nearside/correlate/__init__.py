"""How well the fast model predicts what the RTL does: the same rows on both, compared."""
