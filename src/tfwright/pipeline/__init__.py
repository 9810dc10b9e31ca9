"""The pipeline: stages, what they hand to each other, and the engine that runs them."""
