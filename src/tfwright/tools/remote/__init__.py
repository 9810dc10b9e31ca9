"""Other machines: builds over OpenSSH, and by Slurm."""
