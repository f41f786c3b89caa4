"""The checks behind `gatehouse check`, `/readyz` and `/gatehouse status`."""
