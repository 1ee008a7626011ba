/* A disk that fails: preloaded, it stands between a process and the files whose path begins with FAULTY_FILE.
 *
 * power_loss(at, seed): at the at-th sync, what was written since each file's last sync is taken back, save what
 * chance let reach the disk, and the process is gone. fail(at, error, times): the at-th write, sync or truncation
 * from now on fails with that errno, and the ones after it, so many times.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

struct undo { struct undo *before; int fd; ino_t inode; off_t at, size; size_t length; char old[]; };

static struct undo *undone;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int loss_at, operations, fail_at, fail_times, fail_with;
static unsigned chance;
static __thread int inside;

void power_loss(int at, unsigned seed) { loss_at = at; chance = seed; }
void fail(int at, int error, int times) { operations = 0; fail_at = at; fail_with = error; fail_times = times; }
int count(void) { return operations; }

static int tracked(int fd) {
    static const char *prefix;
    char link[64], path[4096];
    if (inside) return 0;
    if (!prefix && !(prefix = getenv("FAULTY_FILE"))) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return !strncmp(path, prefix, strlen(prefix)) && !strstr(path, "-shm");
}

static int fails(void) {
    operations++;
    if (!fail_at || operations < fail_at || operations >= fail_at + fail_times) return 0;
    errno = fail_with;
    return 1;
}

#define REAL(name, type) static type real; if (!real) real = (type)dlsym(RTLD_NEXT, name)
typedef ssize_t (*pwrite_t)(int, const void *, size_t, off_t);
typedef ssize_t (*write_t)(int, const void *, size_t);
typedef int (*sync_t)(int);
typedef int (*truncate_t)(int, off_t);

static ssize_t plain_pwrite(int fd, const void *data, size_t length, off_t at) {
    REAL("pwrite64", pwrite_t);
    return real(fd, data, length, at);
}
static int plain_truncate(int fd, off_t size) { REAL("ftruncate64", truncate_t); return real(fd, size); }

static void remember(int fd, off_t at, size_t length) {
    struct stat found;
    if (!loss_at || fstat(fd, &found)) return;
    struct undo *one = malloc(sizeof *one + length);
    ssize_t had = pread(fd, one->old, length, at);
    *one = (struct undo){undone, dup(fd), found.st_ino, at, found.st_size, had > 0 ? (size_t)had : 0};
    undone = one;
}

static void lose(void) {
    inside = 1;
    for (struct undo *one = undone; one; one = one->before) {
        if (rand_r(&chance) % 4 == 0) continue; /* this one happened to reach the disk */
        plain_pwrite(one->fd, one->old, one->length, one->at);
        struct stat now;
        if (!fstat(one->fd, &now) && now.st_size > one->size) plain_truncate(one->fd, one->size);
    }
    _exit(66);
}

static int synced(int fd, const char *name) {
    int outcome = 0, ours;
    pthread_mutex_lock(&lock);
    ours = tracked(fd);
    if (ours && loss_at && --loss_at == 0) lose();
    if (ours && fails()) {
        outcome = -1;
    } else {
        sync_t real = (sync_t)dlsym(RTLD_NEXT, name);
        outcome = loss_at ? 0 : real(fd); /* nothing is really lost here, so nothing need really be synced */
        struct stat found;
        if (ours && !fstat(fd, &found)) {
            struct undo **place = &undone;
            while (*place) {
                struct undo *one = *place;
                if (one->inode == found.st_ino) { *place = one->before; close(one->fd); free(one); }
                else place = &one->before;
            }
        }
    }
    pthread_mutex_unlock(&lock);
    return outcome;
}
int fsync(int fd) { return synced(fd, "fsync"); }
int fdatasync(int fd) { return synced(fd, "fdatasync"); }

static ssize_t written(int fd, const void *data, size_t length, off_t at) {
    ssize_t outcome = -1;
    pthread_mutex_lock(&lock);
    if (!tracked(fd)) outcome = plain_pwrite(fd, data, length, at);
    else if (!fails()) { remember(fd, at, length); outcome = plain_pwrite(fd, data, length, at); }
    pthread_mutex_unlock(&lock);
    return outcome;
}
ssize_t pwrite(int fd, const void *data, size_t length, off_t at) { return written(fd, data, length, at); }
ssize_t pwrite64(int fd, const void *data, size_t length, off_t at) { return written(fd, data, length, at); }

ssize_t write(int fd, const void *data, size_t length) {
    REAL("write", write_t);
    if (!tracked(fd)) return real(fd, data, length);
    off_t at = lseek(fd, 0, SEEK_CUR);
    ssize_t outcome = written(fd, data, length, at);
    if (outcome > 0) lseek(fd, outcome, SEEK_CUR);
    return outcome;
}

static int truncated(int fd, off_t size) {
    int outcome = -1;
    pthread_mutex_lock(&lock);
    if (!tracked(fd)) outcome = plain_truncate(fd, size);
    else if (!fails()) {
        struct stat found;
        if (!fstat(fd, &found) && found.st_size > size) remember(fd, size, found.st_size - size);
        outcome = plain_truncate(fd, size);
    }
    pthread_mutex_unlock(&lock);
    return outcome;
}
int ftruncate(int fd, off_t size) { return truncated(fd, size); }
int ftruncate64(int fd, off_t size) { return truncated(fd, size); }
