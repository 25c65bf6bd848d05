"""What emulated boards are allowed to do: set points, dilation, heat. Pure."""
