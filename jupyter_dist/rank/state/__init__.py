"""What a rank holds, in files: written, and read in other processes."""
