"""The gate of a gated MLP: silu(gate) * up."""
