"""Pure: values in, Block Kit out."""
