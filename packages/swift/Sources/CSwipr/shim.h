// The installed header, found through pkg-config.
#include <swipr.h>
