"""The soak test kills processes while they work, and then compares the results with a model."""
