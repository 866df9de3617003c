# A forked child whose first thread waits, with another thread beside it.
def waits(pipe)
  pipe.read
end

from, to = IO.pipe
child = fork do
  to.close
  Thread.new { sleep }
  waits(from)
end
puts "child #{child}", "ready"
$stdout.flush
$stdin.gets
to.close
Process.wait(child)
puts "ok"
