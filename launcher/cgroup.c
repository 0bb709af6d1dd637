/* Selects the implementation (v2, v1, none), finds our own cgroup, removes directories. */
#include "cgroup.h"

#include "clone_child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool has_word(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ',' || at[-1] == ' ') && strchr(", \n", at[length]) != NULL)
            return true;
    return false;
}

/* Our path in a hierarchy, from /proc/self/cgroup: "id:controllers:path". */
static bool own_path(const char *controller, char *path, size_t size) {
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[CGROUP_PATH_MAX + 128];
    bool found = false;
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        char *controllers = strchr(line, ':');
        char *where = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (where == NULL)
            continue;
        *where++ = '\0';
        where[strcspn(where, "\n")] = '\0';
        controllers++;
        found = controller[0] == '\0' ? controllers[0] == '\0' : has_word(controllers, controller);
        if (found)
            found = (size_t)snprintf(path, size, "%s", where) < size;
    }
    if (file != NULL)
        fclose(file);
    return found;
}

/* Mount point of a hierarchy, from mountinfo: "id parent dev root mountpoint options … - type source options". */
static bool mount_of(const char *controller, char *root, char *point, size_t size) {
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char line[4096], type[64], options[1024];
    bool found = false;
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        char *tail = strstr(line, " - ");
        char root_text[1024], point_text[1024];
        if (tail == NULL || sscanf(line, "%*d %*d %*s %1023s %1023s", root_text, point_text) != 2)
            continue;
        if (sscanf(tail, " - %63s %*s %1023s", type, options) != 2)
            continue;
        if (controller[0] == '\0' ? strcmp(type, "cgroup2") != 0
                                  : strcmp(type, "cgroup") != 0 || !has_word(options, controller))
            continue;
        found = (size_t)snprintf(root, size, "%s", root_text) < size && (size_t)snprintf(point, size, "%s", point_text) < size;
    }
    if (file != NULL)
        fclose(file);
    return found;
}

bool cgroup_own_dir(const char *controller, char *dir, size_t size) {
    char path[CGROUP_PATH_MAX], root[CGROUP_PATH_MAX], point[CGROUP_PATH_MAX];
    if (!own_path(controller, path, sizeof path) || !mount_of(controller, root, point, sizeof root))
        return false;
    const char *below = path;
    size_t root_length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(path, root, root_length) == 0)
        below = path + root_length;
    if (strncmp(below, "/..", 3) == 0 || strcmp(below, "/") == 0)
        below = ""; /* our cgroup is not below this mount's root: use the mount point */
    return (size_t)snprintf(dir, size, "%s%s", point, below) < size;
}

bool cgroup_create(struct cgroup *cgroup, const char *name, struct fault *fault) {
    *cgroup = (struct cgroup){.kind = CGROUP_NONE, .slot_fd = -1, .run_fd = -1};
    if (v2_create(cgroup, name, fault))
        cgroup->kind = CGROUP_V2;
    else if (fault->step == NULL && v1_create(cgroup, name, fault))
        cgroup->kind = CGROUP_V1;
    if (cgroup->kind == CGROUP_NONE)
        cgroup_remove(cgroup);
    return fault->step == NULL;
}

bool cgroup_enter(struct cgroup *cgroup, struct fault *fault) {
    return cgroup->kind != CGROUP_V1 || v1_enter(cgroup, fault);
}

static void kill_members(const char *dir) {
    char path[CGROUP_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/cgroup.procs", dir);
    FILE *file = fopen(path, "re");
    int pid;
    while (file != NULL && fscanf(file, "%d", &pid) == 1)
        if (pid > 1)
            kill(pid, SIGKILL);
    if (file != NULL)
        fclose(file);
}

static void remove_children(const char *dir) {
    DIR *entries = opendir(dir);
    struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        char path[CGROUP_PATH_MAX];
        bool own = strncmp(entry->d_name, "run-", 4) == 0;
        if (entry->d_type == DT_DIR && own && (size_t)snprintf(path, sizeof path, "%s/%s", dir, entry->d_name) < sizeof path)
            cgroup_remove_dir(path);
    }
    if (entries != NULL)
        closedir(entries);
}

/* Idempotent: a missing directory counts as removed. Waits at most two seconds for killed processes to disappear. */
void cgroup_remove_dir(const char *path) {
    struct timespec pause = {.tv_nsec = 1000000};
    remove_children(path);
    for (int tries = 0; tries < 2000 && rmdir(path) != 0 && errno == EBUSY; tries++) {
        kill_members(path);
        nanosleep(&pause, NULL);
    }
}

void cgroup_remove(const struct cgroup *cgroup) {
    for (size_t i = 0; i < cgroup->dir_count; i++)
        cgroup_remove_dir(cgroup->dirs[i]);
}

bool cgroup_prepare(struct cgroup *cgroup, struct fault *fault) { return cgroup->kind != CGROUP_V2 || v2_prepare(cgroup, fault); }

bool cgroup_begin_run(struct cgroup *cgroup, const struct limits *limits, struct fault *fault) {
    if (cgroup->kind == CGROUP_V2)
        return v2_begin_run(cgroup, limits, fault);
    return cgroup->kind == CGROUP_NONE || v1_begin_run(cgroup, limits, fault);
}

int cgroup_clone_fd(const struct cgroup *cgroup) { return cgroup->kind == CGROUP_V2 ? cgroup->run_fd : -1; }

bool cgroup_join(const struct cgroup *cgroup) {
    if (cgroup->kind == CGROUP_V2)
        return clone_child_into_cgroup_supported() || v2_join(cgroup);
    return cgroup->kind == CGROUP_NONE || write(cgroup->memory_tasks_fd, "0", 1) == 1;
}

uint64_t cgroup_cpu_ns(struct cgroup *cgroup) {
    if (cgroup->kind == CGROUP_V2)
        return v2_cpu_ns(cgroup);
    return cgroup->kind == CGROUP_V1 ? v1_cpu_ns(cgroup) : 0;
}

void cgroup_sample_peak(struct cgroup *cgroup) {
    if (cgroup->peak_is_sampled)
        v2_sample_peak(cgroup);
}

int cgroup_oom_event_fd(const struct cgroup *cgroup) { return cgroup->kind == CGROUP_V1 ? cgroup->oom_event_fd : -1; }

bool cgroup_has_oom_killed(const struct cgroup *cgroup) { return cgroup->kind == CGROUP_V1 && v1_has_oom_killed(cgroup); }

void cgroup_kill(struct cgroup *cgroup) {
    if (cgroup->kind == CGROUP_V2)
        v2_kill(cgroup);
}

void cgroup_finish_run(struct cgroup *cgroup, struct usage *usage) {
    *usage = (struct usage){0};
    if (cgroup->kind == CGROUP_V2)
        v2_finish_run(cgroup, usage);
    else if (cgroup->kind == CGROUP_V1)
        v1_finish_run(cgroup, usage);
}

void cgroup_drop_page_cache(struct cgroup *cgroup) {
    if (cgroup->kind == CGROUP_V1)
        v1_drop_page_cache(cgroup);
}
