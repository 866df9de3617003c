# Sinatra under Puma: a page, a sort, a recursion, an exception, a hash.
require "json"
require "openssl"
require "sinatra/base"

class App < Sinatra::Base
  set :show_exceptions, false
  set :raise_errors, false
  set :views, __dir__
  template(:page) { "<ul><% @rows.each do |row| %><li><%= row[:name].upcase %> <%= row[:total] %></li><% end %></ul>" }

  def total(depth, n)
    depth > 0 ? n % 7 + total(depth - 1, n + 1) : n
  end

  def rows(n)
    (0...60).map { |i| { name: "row#{i * n % 89}", total: total(i % 30, n) } }.sort_by { |row| [row[:total], row[:name]] }
  end

  get("/page/:n") { @rows = rows(params[:n].to_i); erb :page }
  get("/json/:n") do
    n = params[:n].to_i
    { rows: rows(n).first(10), share: n / (n % 5) }.to_json
  rescue ZeroDivisionError => error
    halt 422, { why: error.message }.to_json
  end
  post("/hash") { OpenSSL::PKCS5.pbkdf2_hmac(request.body.read, "salt", 500, 32, "sha256").unpack1("H*") }
end
run App
