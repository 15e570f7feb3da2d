"""Python objects between a user's own processes: the client's and the ranks'. Server and agent never see them."""
