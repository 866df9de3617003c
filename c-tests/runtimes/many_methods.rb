# Computes, until its input ends, below 300 methods of as many classes that call each other.
COUNT = 300
COUNT.times do |k|
  calls = k + 1 < COUNT ? "Called#{k + 1}.new.called_#{k + 1}" : 'computes'
  eval "class Called#{k}; def called_#{k}; x = 1; x += #{calls}; x; end; end"
end

def computes
  sum = 0
  2_000.times { |n| sum += n }
  sum
end

$stdout.sync = true
puts 'ready'
Called0.new.called_0 until IO.select([$stdin], nil, nil, 0)
puts 'ok'
