"""All-Tokens MLM: every token is predicted, and may be copied."""
