print("unfinished"
