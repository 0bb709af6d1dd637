low, high = 1, 1_000_000
while True:
    guess = (low + high) // 2
    print(guess, flush=True)
    answer = input()
    if answer == "correct":
        break
    if answer == "higher":
        low = guess + 1
    else:
        high = guess - 1
