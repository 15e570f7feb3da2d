"""What a rank adds to the error of a cell: the failed rank, the holders of memory, fewer C++ frames."""
