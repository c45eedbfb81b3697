"""What a pretrained encoder is worth, and what it cost: scores, analyses, FLOPs."""
