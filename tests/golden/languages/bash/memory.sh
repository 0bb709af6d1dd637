block=x
while :; do block=$block$block; done
