BEGIN { while (1) turns++ }
