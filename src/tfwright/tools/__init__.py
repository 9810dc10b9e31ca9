"""The only side effects: one outside thing per module."""
