// Types that have units of their own, and a function that is inlined.
struct First {
    int value;
    inline __attribute__((always_inline)) int twice() { return value * 2; }
};

struct Second {
    First first;
    int value;
};

volatile int sink;

extern "C" __attribute__((noinline)) void outer(Second *second) {
    for (int i = 0; i < second->value; i++)
        sink = sink + second->first.twice();
}

int main(int argc, char **) {
    Second second = {{argc}, argc};
    outer(&second);
    return 0;
}
