"""Which change broke a nightly recipe."""
