# Threads with time slices by a timer, fibers, signals, time-outs, children: Ruby.
require "timeout"
def line(name, value) = puts("#{name}: #{value}")
def churn(seed)
  sum, kept = seed, []
  3000.times { |round| kept = [] if round % 50 == 0; list = Array.new(200) { |i| "#{i + round}" }; kept << list; sum = (sum * 31 + list.sum(&:to_i)) % 1_000_003 }
  sum
end
line "sums", 4.times.map { |i| Thread.new { churn(i) } }.map(&:value).join(" ")
queue = Queue.new
consumer = Thread.new { 5000.times.sum { queue.pop } }
5000.times { |n| queue << n }
line "consumed", consumer.value
fibers = 50.times.map { |i| Fiber.new { 100.times.sum { |n| Fiber.yield; n + i } } }
last = nil
101.times { last = fibers.map(&:resume) }
line "fibers", last.sum
caught = 0
trap("USR1") { caught += 1 }
20.times { |n| Process.kill("USR1", Process.pid); sleep 0.001 until caught > n }
line "signals", caught
line "time-outs", 10.times.count { begin; Timeout.timeout(0.01) { sleep 1 }; rescue Timeout::Error; true; end }
began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
50.times { sleep 0.002 }
line "slept", Process.clock_gettime(Process::CLOCK_MONOTONIC) - began >= 0.1
read, write = IO.pipe
pid = fork { read.close; 200.times { |n| write.puts n; sleep 0.0005 }; exit! 7 }
write.close
line "piped", read.each_line.sum(&:to_i)
Process.wait pid
line "child", $?.exitstatus
line "selected", 20.times.count { IO.select([IO.pipe[0]], nil, nil, 0.002).nil? }
line "system", 50.times.count { `echo hello` == "hello\n" }
10.times { GC.start }
line "collected", true
