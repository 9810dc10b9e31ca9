"""This host: what is here, what a recipe wants, and what follows from the difference."""
