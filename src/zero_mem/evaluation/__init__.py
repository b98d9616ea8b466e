"""How much of the evidence recall finds, and how well a reader answers from it."""
