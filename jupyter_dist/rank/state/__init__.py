"""What a rank holds, in files: saved, and restored in other processes."""
