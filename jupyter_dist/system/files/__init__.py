"""Files and folders on disk: file systems, private folders, and the copy of the code that groups run."""
