/* sysinfo(2), answered by the agent: C libraries learn from it how much memory there is, but the kernel's answer also has
 * load, free memory and the number of processes of the whole machine, by which boxes could signal to each other. */
#ifndef ADJUDGE_SYSINFO_H
#define ADJUDGE_SYSINFO_H

void sysinfo_init(void); /* once */
/* By whoever installed a filter, in the agent's memory and descriptors: where calls are to be heard of; -1: nowhere. */
void sysinfo_listen(int listener_fd);
int sysinfo_fd(void);      /* readable when a program waits for an answer; -1: none will */
void sysinfo_reply(void); /* one program, if it still waits */

#endif
