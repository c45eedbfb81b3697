"""Commands of `keras-corrupt` that no other folder has."""
