/* A process whose first thread ends while another goes on. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *rest(void *arg) {
	char c;
	(void)arg;
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	_exit(0);
}

int main(void) {
	pthread_t t;
	pthread_create(&t, NULL, rest, NULL);
	pthread_exit(NULL);
}
