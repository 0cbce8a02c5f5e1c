/* A process that waits in vfork, where no signal reaches it, until its child
 * has read the end of its input. The child gives the connection (fd 3) back. */
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>

int main(void) {
	char c;
	puts("ready");
	fflush(stdout);
	pid_t pid = vfork();
	if (pid == 0) {
		close(3);
		while (read(0, &c, 1) > 0)
			;
		_exit(0);
	}
	puts("child done");
	fflush(stdout);
	return 0;
}
