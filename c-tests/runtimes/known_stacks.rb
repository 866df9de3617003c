# A program of which every possible stack is known: families f_K -> g_K -> h_K, each evaluated as 40 lines of
# `family.rb`. The first argument says how they call each other:
#
# plain       directly
# methods     as methods of a class: f_K its own, g_K and h_K of its objects
# callbacks   through C functions that call back: map() and sort_by()
# deep        f_K at the end of a recursion of 40 r_K
# deeper      the same, of 2,000
# exceptions  h_K raises, f_K rescues
# fibers      f_K is started in a fiber
# enumerators g_K is called by an enumerator that f_K asks for its next value, which has a fiber
# threads     three threads do
# brief       f_K is called some times by a thread that ends then
# evals       g_K evaluates a text that calls h_K
# blocks      methods that are defined by blocks
# missing     g_K is not there: method_missing() is called, of a class
# refined     g_K is a refinement
# churn       each family is compiled, used, and dropped again
# collected   the same, and objects are moved all the time
FAMILIES = 24
HOW = ARGV[0]
CALLS = {
  "callbacks" => ["[n, 2].map { |x| g_K(x) }.max", "[2, 1].sort_by { |x| h_K(x) }[0]", "t"],
  "exceptions" => ["begin; g_K(n); rescue ArgumentError; n + 1; end", "begin; h_K(n) + 1; ensure; n += 1; end", "raise ArgumentError"],
  "enumerators" => ["Enumerator.new { |to| to << g_K(n) << 2 }.next + 1", "h_K(n) + 1", "t"],
  "evals" => ["g_K(n) + 1", "eval('h_K(n) + 1', binding, 'family.rb', __LINE__)", "t"],
  "methods" => ["new.g_K(n) + 1", "h_K(n) + 1", "t"],
  "missing" => ["new.g_K(n) + 1", "h_K(n) + 1", "t"],
}.freeze
SOURCE = <<'END'

def r_K(n)
  n > 0 ? r_K(n - 1) : f_K(3) end

def f_K(n)
  n += 1
  F
end

def g_K(n); n *= 2
  G
end

def h_K(n); t = 0; i = 0
  while i < 40
    t = (t * 31 + i) & 0xffff; i += 1
  end
  H end
END

def family(k)
  f, g, h = CALLS.fetch(HOW, ["g_K(n) + 1", "h_K(n) + 1", "t"])
  text = SOURCE.sub("F\n", "#{f}\n").sub("G\n", "#{g}\n").sub("H end", "#{h} end")
  case HOW
  when "methods" then text = "class T_K;#{text.sub('def f_K', 'def self.f_K')}end"
  when "missing" then text = "class T_K;#{text.sub('def f_K', 'def self.f_K').sub('def g_K(n)', 'def method_missing(_, n)')}end"
  when "blocks" then text = text.gsub(/def ([fgh]_K)\(n\)/, 'define_method(:\1) do |n|')
  when "refined"
    refined = "module R_K; refine(Integer) { def g_K; n = self\n  h_K(n) + 1\nend }; end"
    eval(refined.gsub("_K", "_#{k}"), TOPLEVEL_BINDING, "family.rb", 40 * k + 10)
    text = "using R_K;#{text.sub('g_K(n)', 'n.g_K').sub(/def g_K.*?\nend/m, "\n\n")}"
  end
  eval(text.gsub("_K", "_#{k}"), HOW == "refined" ? TOPLEVEL_BINDING.dup : TOPLEVEL_BINDING, "family.rb", 40 * k + 1)
end

def call(k)
  case HOW
  when "methods", "missing" then Object.const_get("T_#{k}").__send__("f_#{k}", 40)
  when "deep" then __send__("r_#{k}", 40)
  when "deeper" then __send__("r_#{k}", 2000)
  when "brief" then Thread.new { i = 0; (__send__("f_#{k}", 40); i += 1) while i < 500 }.join
  when "fibers" then Fiber.new { __send__("f_#{k}", 40) }.resume
  else __send__("f_#{k}", 40)
  end
end

def drop(k)
  "fghr".each_char { |letter| Object.__send__(:remove_method, "#{letter}_#{k}") }
end

def run
  until $ended
    k = 0
    while k < FAMILIES
      family(k) if CHURNS
      call(k)
      drop(k) if CHURNS
      k += 1
    end
  end
end

CHURNS = %w[churn collected].include?(HOW)
$ended = false
Thread.new { STDIN.read; $ended = true }
Thread.new { GC.compact until $ended } if HOW == "collected"
k = 0
(family(k); k += 1) while k < FAMILIES && !CHURNS
puts "ready"; STDOUT.flush
HOW == "threads" ? 3.times.map { Thread.new { run } }.each(&:join) : run
puts "ok"
