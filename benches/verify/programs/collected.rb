# Objects with finalizers, methods that are made and dropped, fibers and sorts, while the collector runs at each allocation or
# moves objects, in three threads, until stdin ends.
$ended = false
Node = Struct.new(:n, :me)

def work(k)
  nodes = (0...20).map { |n| node = Node.new(n); node.me = node }
  eval("def made_#{k}(n); t = 0; n.times { |i| t += i }; t; end", TOPLEVEL_BINDING, "made_#{k}.rb")
  made = __send__("made_#{k}", 50)
  Object.__send__(:remove_method, "made_#{k}")
  fiber = Fiber.new { nodes.each { |node| Fiber.yield node.me.n }; nil }
  sum = 0
  while (n = fiber.resume)
    sum += n
  end
  [sum, made, (1..100).sort_by { |i| -i }.first, "abc".succ * 3]
end

def descend(depth, k)
  depth > 0 ? descend(depth - 1, k) : work(k)
end

def run(id)
  k = id
  wrong = nil
  until $ended
    GC.stress = id == 0 && k % 60 == 0
    is = descend(k % 30, k)
    GC.stress = false if id == 0
    GC.compact if id == 1 && k % 20 == 1 && GC.respond_to?(:compact)
    wrong ||= "wrong in #{k}: #{is}" if is != [190, 1225, 100, "abdabdabd"]
    k += 3
  end
  wrong
end

GC.auto_compact = true if GC.respond_to?(:auto_compact=)
threads = 3.times.map { |id| Thread.new { run(id) } }
puts "ready"
$stdout.flush
$stdin.read
$ended = true
puts threads.map(&:value).compact.first || "ok"
