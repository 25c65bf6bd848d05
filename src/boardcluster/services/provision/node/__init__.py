"""What runs on a node as root to change it; standard library only, see program.py."""
