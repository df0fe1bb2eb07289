"""What pages for people who run servers draw: a decoded log, what fits on a GPU, and what a file of traffic hits."""
