"""Recipes carried to another release."""
