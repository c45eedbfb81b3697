"""Replace MLM: masked language modelling without mask tokens."""
