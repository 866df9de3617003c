/* A program that only works; its runner misbehaves as a client: goes away in the
 * middle of a recording, connects and closes a thousand times, sends half a request. */
// cflags: -O2
#include "burner.h"

int main(void)
{
    host_begin();
    pthread_t burner = burner_begin();
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    return host_end();
}
