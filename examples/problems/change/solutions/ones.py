# Pays in ones: right, and rarely the shortest payment.
amount = int(input().split()[0])
print(amount)
print(*[1] * amount)
