"""How well the engine `fast` tells what the RTL does: the same rows on both, compared."""
