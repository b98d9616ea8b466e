"""What a prompt costs: tokens by column, cache states, prices."""
