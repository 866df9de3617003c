"""Writes a C++ file that keeps a compiler busy for many seconds."""
HEADERS = """algorithm array atomic bitset chrono complex deque filesystem fstream functional future
iomanip iostream iterator limits list locale map memory mutex numeric optional ostream queue random
ratio regex set sstream stack string string_view thread tuple type_traits unordered_map unordered_set
utility valarray variant vector""".split()
for header in HEADERS:
    print(f"#include <{header}>")
print("template <int N> struct Deep { using type = typename Deep<N - 1>::type; static constexpr int value = Deep<N - 1>::value + N; };")
print("template <> struct Deep<0> { using type = int; static constexpr int value = 0; };")
for number in range(60):
    print(f"""
int function_{number}(const std::vector<std::string>& input) {{
    std::map<std::string, std::vector<std::tuple<int, double, std::array<char, {number + 1}>>>> groups;
    for (const auto& text : input) groups[text.substr(0, {number % 7})].push_back({{int(text.size()), {number}.5, {{}}}});
    std::regex pattern("a{{1,{number % 9 + 1}}}b*");
    std::variant<int, std::string, std::array<long, {number + 1}>> one = int(groups.size());
    std::unordered_map<int, std::function<int(int)>> table{{{{ {number}, [&](int x) {{ return x + Deep<{number % 200 + 100}>::value; }} }}}};
    std::ostringstream out;
    for (auto& [key, list] : groups) {{
        std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {{ return std::get<1>(a) < std::get<1>(b); }});
        out << key << std::setw({number}) << list.size() << std::regex_replace(key, pattern, "x");
    }}
    return std::visit([](const auto& v) {{ return int(sizeof(v)); }}, one) + table[{number}](int(out.str().size()));
}}""")
