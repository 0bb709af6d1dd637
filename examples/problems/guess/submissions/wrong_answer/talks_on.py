# Finds the number and guesses once more.
low, high = 1, 1_000_000
answer = ""
while answer != "correct":
    guess = (low + high) // 2
    print(guess, flush=True)
    answer = input()
    if answer == "higher":
        low = guess + 1
    else:
        high = guess - 1
print(guess, flush=True)
