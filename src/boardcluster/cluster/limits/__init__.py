"""What the kernel lets emulated nodes have: CPU, memory, disk and link; written and read back."""
