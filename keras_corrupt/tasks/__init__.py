"""What encoders are evaluated on: data, metrics, published scores. See README.md."""
