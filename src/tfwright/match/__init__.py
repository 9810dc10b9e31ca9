"""Recipes for a machine."""
