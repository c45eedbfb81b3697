"""Other libraries' formats in and out, and exported models."""
