"""What the command `keras-corrupt` has beside the commands of other folders."""
