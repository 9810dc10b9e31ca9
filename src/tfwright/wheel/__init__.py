"""Wheels as data: read, checked and sealed. No network, no other program."""
