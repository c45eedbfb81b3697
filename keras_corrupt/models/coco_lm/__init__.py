"""COCO-LM: so far how its paper fine-tunes."""
