// Profiles one scope of a C++ program into a file: from where the object is made to where it ends, also by
// an exception.
//
//     make && build/scope profile.folded
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include <swipr.h>

class Recording {
public:
    Recording(const std::string &file, const std::string &format, const swipr_recording_options &options)
    {
        check(swipr_recording_begin_with(file.c_str(), format.c_str(), &options, &number_));
    }
    // The file is complete when the scope has ended.
    ~Recording() { swipr_recording_end(number_); }
    Recording(const Recording &) = delete;
    Recording &operator=(const Recording &) = delete;

    static void check(swipr_status status)
    {
        if (status == SWIPR_OK || status == SWIPR_ALREADY_RUNNING)
            return;
        char text[512];
        swipr_last_error(text, sizeof text);
        throw std::runtime_error(text);
    }

private:
    std::uint64_t number_ = 0;
};

namespace work {

struct Particle {
    double weight, place;
};

// Not inlined, so that it is a frame of its own even where a compiler thinks otherwise.
[[gnu::noinline]] double sorted_median(std::vector<Particle> particles)
{
    std::sort(particles.begin(), particles.end(),
              [](const Particle &a, const Particle &b) { return a.place < b.place; });
    return particles[particles.size() / 2].place;
}

double simulate()
{
    std::vector<Particle> particles(200000);
    std::uint64_t state = 88172645463325252u;
    double sum = 0;
    for (int round = 0; round < 20; round++) {
        for (auto &particle : particles) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            particle = {1.0, static_cast<double>(state % 1000003)};
        }
        sum += sorted_median(particles);
    }
    return sum;
}

} // namespace work

int main(int count, char **arguments)
{
    const std::string file = count > 1 ? arguments[1] : "scope.folded";
    try {
        Recording::check(swipr_start(nullptr));
        swipr_recording_options options = SWIPR_RECORDING_OPTIONS_INIT;
        options.hz = 1000;
        Recording recording(file, "folded", options);
        volatile double sum = work::simulate();
        (void)sum;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "swipr: %s\n", error.what());
        return 1;
    }
    swipr_stop();
    std::printf("%s\n", file.c_str());
    return 0;
}
