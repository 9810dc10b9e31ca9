"""The list of recipes."""
