// An anonymous namespace, a template, a static member, inlined across a class.
#include <string>
#include <vector>

volatile int sink;

namespace {
__attribute__((noinline)) void unnamed(int n) {
    sink = n; // unnamed
}
} // namespace

namespace shapes {
template <typename T> struct Box {
    T value;
    __attribute__((noinline)) void store(T other) {
        value = other;
        sink = static_cast<int>(value); // store
    }
    __attribute__((always_inline)) inline void twice(T other) {
        sink = static_cast<int>(other) * 2; // twice
    }
    static __attribute__((noinline)) int count(const std::vector<T> &all) {
        return static_cast<int>(all.size()) + sink; // count
    }
};
} // namespace shapes

static __attribute__((noinline)) void plain(int n) {
    sink = n + 7; // plain
}

extern "C" __attribute__((noinline)) void with_c_name(int n) {
    sink = n + 8; // with_c_name
}

int main(int argc, char **) {
    shapes::Box<long> box{argc};
    box.store(argc);
    box.twice(argc);
    unnamed(argc);
    plain(argc);
    with_c_name(argc);
    return shapes::Box<int>::count(std::vector<int>(argc, 1)) == 0;
}
