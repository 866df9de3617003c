# A second of work, then threads that run for 20 ms, one after the other.
def cpu(clock)
  Process.clock_gettime(clock)
end

def spin
  nil while cpu(Process::CLOCK_THREAD_CPUTIME_ID) < 0.02
end

nil while cpu(Process::CLOCK_PROCESS_CPUTIME_ID) < 1
Thread.new { spin }.join while true
