"""What the operations mean: written once, on the primitives that every store offers."""
