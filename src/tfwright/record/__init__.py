"""Answers to ./configure, recorded."""
