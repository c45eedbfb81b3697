"""ELECTRA-TT: ELECTRA with Electric's two-tower generator."""
