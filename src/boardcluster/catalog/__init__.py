"""Boards, media, power supplies and networks with sourced figures, and the papers' tables."""
