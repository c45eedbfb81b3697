"""ELECTRA: replaced token detection."""
