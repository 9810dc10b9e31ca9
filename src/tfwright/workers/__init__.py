"""Several recipes on several machines: who builds what, and who takes over from a lost worker."""
