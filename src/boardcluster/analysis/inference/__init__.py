"""The inference layer. Pure."""
