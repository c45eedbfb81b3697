"""COCO-LM: corrective language modelling and sequence contrastive learning."""
