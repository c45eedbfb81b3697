"""What encoders are evaluated on: data, metrics, published scores."""
