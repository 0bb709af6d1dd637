puts (1 +
