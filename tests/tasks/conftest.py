"""Rows of WNLI."""

CUP = "The cup fell on the plate because it was light."

ROWS = [
    (CUP, "The cup was light."),
    (CUP, "The plate was light."),
    ("Kim saw the cup and it fell on him.", "The cup fell on him."),
    (CUP, "Nothing of the kind."),
]
