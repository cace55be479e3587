"""x_T … x_0: sequences drawn from p_θ, and the chains that lead to them."""
