# Knows what to do with two of the three answers.
STEP = {"higher": 1}
low, high = 1, 1_000_000
answer = ""
while answer != "correct":
    guess = (low + high) // 2
    print(guess, flush=True)
    answer = input()
    if answer != "correct":
        low = guess + STEP[answer]
