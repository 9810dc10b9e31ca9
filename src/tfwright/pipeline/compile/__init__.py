"""How Bazel is run for the stage compile: its command, its attempts, and why it failed."""
