"""Prepare text input on the driver: checked, brought to the wanted size, and cached."""
