local blocks = {}
while true do blocks[#blocks + 1] = string.rep("x", 1 << 20) .. #blocks end
