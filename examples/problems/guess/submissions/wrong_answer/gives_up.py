# Guesses once and leaves.
print(500_000, flush=True)
input()
