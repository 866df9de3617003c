// Functions whose names break readers of perf's text: anonymous namespaces, lambdas, operators,
// function types in templates; until ended.
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

static volatile unsigned long sink;

__attribute__((noinline)) static void burn() { for (int i = 0; i < 30000; i++) sink += (unsigned long)i; }

namespace {
__attribute__((noinline)) void marked_anonymous() { burn(); }
struct Hidden {
    __attribute__((noinline)) void operator()(int) const { burn(); }
    __attribute__((noinline)) Hidden *operator->() { burn(); return this; }
    __attribute__((noinline)) bool operator<(const Hidden &) const { burn(); return false; }
    __attribute__((noinline)) Hidden &operator<<(int) { burn(); return *this; }
    __attribute__((noinline)) bool operator>(const Hidden &) const { burn(); return false; }
    __attribute__((noinline)) int operator[](int) { burn(); return 0; }
    __attribute__((noinline)) operator std::string() const { burn(); return "x"; }
    __attribute__((noinline)) void marked_member() {}
    __attribute__((noinline)) ~Hidden() { burn(); }
};
}

template <typename T, int N> __attribute__((noinline)) void marked_template(T value) { burn(); (void)value; }
template <typename F> __attribute__((noinline)) void marked_caller(F f) { f(1); burn(); }
__attribute__((noinline)) void marked_pointer(void (*f)(int, char *), const std::map<std::string, std::vector<int>> &) { burn(); (void)f; }
void operator""_marked(unsigned long long) { burn(); }

int main() {
    std::function<void(int)> wrapped = [](int) { burn(); };
    for (;;) {
        Hidden one, two;
        marked_anonymous();
        one(1);
        one->marked_member();
        sink += one < two;
        one << 1;
        sink += one > two;
        sink += (unsigned long)one[3];
        sink += std::string(one).size();
        marked_template<void (*)(int), 3>(nullptr);
        marked_template<std::pair<int, const char *>, -1>({1, ""});
        marked_caller([](int) { burn(); });
        marked_caller([&](int n) { burn(); sink += (unsigned long)n; });
        marked_caller(wrapped);
        marked_pointer(nullptr, {});
        1_marked;
        std::vector<int> values{3, 1, 2};
        std::sort(values.begin(), values.end(), [](int a, int b) { burn(); return a < b; });
    }
}
