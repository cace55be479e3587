"""What is trained and what is reported: the objective, and bounds on the log-likelihood."""
