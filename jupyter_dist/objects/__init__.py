"""Exchanges Python objects between the client and the ranks of one user. Server and agent never see them."""
