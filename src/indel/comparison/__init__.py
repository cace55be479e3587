"""Every process side by side: one network, one data set, one budget, one set of measures."""
