local function hot(rounds)
  local sum = 0
  for n = 1, rounds do sum = (sum * 31 + n) % 1000003 end
  return sum
end
local function work(seconds)
  local finish = os.time() + seconds
  while os.time() < finish do hot(10000000) end
end
work(1)
print("ready")
io.stdout:flush()
work(60)
