"""TEAMS: replaced token detection and multi-word selection."""
