"""The memory map: from a trace to frames, from frames to the component that plays them."""
