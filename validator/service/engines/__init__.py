"""Who carries a job out: GitHub Actions, Slurm, or one worker process on this machine."""
