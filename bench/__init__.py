"""Side-by-side measurements of Gatehouse and its alternatives (`make bench`)."""
