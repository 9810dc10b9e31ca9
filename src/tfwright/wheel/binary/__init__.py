"""Shared libraries as data: ELF, Mach-O, GPU code, instruction sets."""
