/* sysinfo(2), answered by the agent. C libraries need the memory size from it, but the kernel's reply also contains
 * load, free memory and process count of the whole host, which boxes could use as a covert channel. */
#ifndef ADJUDGE_SYSINFO_H
#define ADJUDGE_SYSINFO_H

void sysinfo_init(void); /* called once */
/* Called after a filter is installed, in the agent's memory and descriptors: the listener for calls, or -1. */
void sysinfo_listen(int listener_fd);
int sysinfo_fd(void);     /* readable when a program waits for a reply; -1: no listener */
void sysinfo_reply(void); /* replies to one program, if it still waits */

#endif
