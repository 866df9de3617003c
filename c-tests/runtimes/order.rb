# Eight levels of `qsort`, each of which calls a block of Ruby back, which sorts in the next one.
require "fiddle"

TYPES = [Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_VOIDP].freeze
QSORT = Fiddle::Function.new(Fiddle.dlopen(nil)["qsort"], TYPES, Fiddle::TYPE_VOID)

def spin
  t = i = 0
  while i < 1000
    t = (t * 31 + i) & 0xffff; i += 1
  end
end

def sort(level)
  compare = Fiddle::Closure::BlockCaller.new(Fiddle::TYPE_INT, [Fiddle::TYPE_VOIDP] * 2) do |_, _|
    level > 1 ? sort(level - 1) : spin
    0
  end
  QSORT.call([2, 1].pack("l2"), 2, 4, compare)
end

$ended = false
Thread.new { STDIN.read; $ended = true }
puts "ready"; STDOUT.flush
sort(8) until $ended
puts "ok"
