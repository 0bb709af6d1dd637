error("on purpose")
