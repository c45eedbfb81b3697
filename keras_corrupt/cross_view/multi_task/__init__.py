"""Several tasks on one encoder (Clark's thesis, 4.1.2)."""
