require "json"
def work(n)
  t = 0
  i = 0
  while i < n
    t = (t * 31 + i) & 0xffff
    i += 1
  end
  t
end
def a; work(4000); end
def b; work(8000); end
def c; work(20000); end
def cpu; Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID); end
used = Hash.new(0)
rounds = 0
stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + ARGV[0].to_f
while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
  %w[a b c].each { |f| t = cpu; send(f); used[f] += cpu - t }
  rounds += 1
end
puts JSON.generate([used, rounds, cpu])
