# Threads that wait below functions that the compiler has compiled, at their second call.
def waits(queue)
  queue.pop
end

def calls(queue)
  waits(queue)
end

full = Queue.new
4.times { full.push(1) }
4.times { calls(full) }
threads = 8.times.map { Thread.new { calls(full) } }
Thread.pass until threads.all? { |thread| thread.status == "sleep" }
puts "ready"
$stdout.flush
$stdin.gets
threads.size.times { full.push(1) }
threads.each(&:join)
puts "ok"
