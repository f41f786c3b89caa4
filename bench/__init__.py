"""Side-by-side measurements: Gatehouse against what people would use instead (`make bench`)."""
