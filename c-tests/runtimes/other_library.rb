# Computes in a thread, and loads the library that is named when it is told to. Says what came of it.
def computes
  sum = 0
  20_000.times { |number| sum += number }
  sum
end

Thread.new { loop { computes } }
puts 'ready'
$stdout.flush
$stdin.gets
begin
  require 'fiddle'
  Fiddle.dlopen(ARGV[0])
  puts 'loaded it'
rescue LoadError => e
  puts "loaded nothing: #{e.message.lines.first}"
end
$stdout.flush
$stdin.gets
puts 'ok'
