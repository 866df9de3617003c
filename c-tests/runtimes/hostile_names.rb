# Of ASCII, names that `def` takes have letters, digits and underscores.
names = ["h2_" + "x" * 10000, "h3_\u202eturned\u2066", "h5_\xff\xfe\xc3".b]
names.each do |name|
  source = "def ".b + name.b + "(one, *rest) = [send(one, *rest)][0]".b
  encoding = name.encoding == Encoding::BINARY ? "ASCII-8BIT" : "UTF-8"
  eval("# encoding: #{encoding}\n".b + source)
end
def spin
  loop { 1000.times { |n| n } }
end
puts "ready"
STDOUT.flush
names = names.map { |name| name.encoding == Encoding::BINARY ? name : name.dup.force_encoding("UTF-8") }
send(*names, :spin)
