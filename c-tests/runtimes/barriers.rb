# Stops at points whose stacks it tells: for each line of standard input, the program goes down a random path of
# functions, prints it as caller_locations() sees it, and waits there for another line. With the argument
# `thread`, another thread does.
require "json"

class Shape
  include Enumerable
  def initialize(path) @path = path end
  def method(path) step(path) end
  def self.of_class(path) step(path) end
  def to_s() step(@path).to_s end
  def to_json(*) step(@path).to_s end
  def <=>(other) step(@path) end
  def ==(other) step(@path) end
  def hash() step(@path) end
  def each() yield step(@path) end
  def coerce(number) step(@path); [number, 0] end
  def method_missing(name, *) name == :absent ? step(@path) : super end
  def respond_to_missing?(*) false end
  define_method(:defined) { |path| step(path) }
  class << self
    def of_singleton(path) [path].each { |rest| step(rest) } end
  end
end

module Mixed
  def mixed(path) step(path) end
end

class Mixer
  include Mixed
end

module Refined
  refine(Integer) { def refined(path) step(path) end }
end
using Refined

def named(path, &block)
  block ? block.call(path) : step(path)
end

def caught(path)
  raise ArgumentError
rescue ArgumentError
  step(path)
end

def ensured(path)
  1
ensure
  step(path)
end

def looped(path)
  loop { step(path); break }
end

$single = Object.new
def $single.alone(path) step(path) end

WAYS = [
  ->(path) { named(path) },
  ->(path) { named(path) { |rest| step(rest) } },
  ->(path) { [path].map { |rest| [rest].each { |again| step(again) } } },
  ->(path) { [2, 1].sort_by { |one| one == 2 ? step(path) : 0 } },
  ->(path) { { path => 1 }.each { |rest, _| step(rest) } },
  ->(path) { 1.times { step(path) } },
  ->(path) { Shape.new(path).method(path) },
  ->(path) { Shape.of_class(path) },
  ->(path) { "#{Shape.new(path)}" },
  ->(path) { JSON.generate([Shape.new(path)]) },
  ->(path) { [Shape.new(path), Shape.new([])].max },
  ->(path) { [Shape.new(path)].include?(1) },
  ->(path) { { Shape.new(path) => 1 }.size },
  ->(path) { Shape.new(path).map { |one| one }.first },
  ->(path) { 1 + Shape.new(path) },
  ->(path) { Shape.new(path).absent },
  ->(path) { Shape.new(path).defined(path) },
  ->(path) { Shape.of_singleton(path) },
  ->(path) { Mixer.new.mixed(path) },
  ->(path) { 1.refined(path) },
  ->(path) { caught(path) },
  ->(path) { ensured(path) },
  ->(path) { looped(path) },
  ->(path) { $single.alone(path) },
  ->(path) { eval("step(path)", binding, "evaluated.rb", 7) },
  ->(path) { Object.new.instance_eval { step(path) } },
  ->(path) { Object.new.instance_exec(path) { |rest| step(rest) } },
  ->(path) { __send__(:step, path) },
  ->(path) { method(:step).call(path) },
  ->(path) { method(:named).to_proc.call(path) },
  ->(path) { [path].each_with_index.map { |rest, _| step(rest) } },
  ->(path) { (1..1).each { step(path) } },
  ->(path) { "a".gsub(/a/) { step(path).to_s } },
  ->(path) { Class.new { define_singleton_method(:own) { |rest| step(rest) } }.own(path) },
  ->(path) { catch(:it) { step(path) } },
].freeze

# The frames, leaf first: what runs, and where it is.
def told
  caller_locations(1).map { |frame| "#{frame.label}|#{frame.path}|#{frame.lineno}" }.join("\t")
end

def step(path)
  return (WAYS[path[0]].call(path.drop(1)); 0) unless path.empty?
  return 0 if $reached
  $reached = true
  puts "at #{told}"; STDOUT.flush; STDIN.gets
  0
end

def run(random)
  while STDIN.gets
    $reached = false
    step(Array.new(random.rand(10)) { random.rand(WAYS.size) }) until $reached
    puts "gone"; STDOUT.flush
  end
end

puts "ready"; STDOUT.flush
random = Random.new(7)
ARGV[0] == "thread" ? Thread.new { run(random) }.join : run(random)
puts "ok"
