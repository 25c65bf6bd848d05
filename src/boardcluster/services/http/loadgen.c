/* An open-loop load generator for HTTP/1.1 that compares every body with what it must be.
 *
 *   loadgen run   plan=FILE out=FILE connections=N requests=N seed=N timeout=S target=ADDRESS:PORT...
 *                 [rate=R | share=S of=RESULT seconds=S] [wait=S] [pause=S]
 *   loadgen serve plan=FILE port=N
 *
 * A line of the plan is WEIGHT PATH FILE: how often a page is asked for, and the file that holds
 * what must come. Request i is for the page that splitmix64(seed + i) picks, so whoever knows plan
 * and seed knows every request.
 *
 * Without a rate each connection asks again as soon as it has its answer (closed loop): as fast as
 * the farm can. With a rate, request i is due at i / rate whatever became of those before it, and
 * its latency counts from that moment, also where no connection was free: latency without
 * coordinated omission (G. Tene, "How NOT to measure latency"). How late the program itself was
 * is kept beside it, for requests that had to wait for nothing else.
 *
 * A request has failed when nothing of its answer comes for `timeout` seconds, so a large answer
 * may take longer than that over a slow link. Its connection then rests for `pause` seconds, else
 * 0.01.
 *
 * `serve` answers from memory: what `run` makes of it is what `run` can make at most.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { PAGES_MOST = 4096, CONNECTIONS_MOST = 4096, TARGETS_MOST = 128, HEAD_MOST = 4096 };
enum { EVENTS = 256, BUFFER = 1 << 18, BUCKETS = 64 * 48, SERIES_MOST = 1 << 16 };
static const int64_t SECOND = 1000000000, TICK = 10000000, BUCKET = 100000000;

typedef struct {
    uint64_t until; /* sum of the weights up to here */
    char request[512], path[256];
    int request_length;
    char *body, *answer;
    size_t length, answer_length;
} Page;

typedef enum { CLOSED, CONNECTING, IDLE, WAITING } State;

typedef struct {
    int fd, target, head_length;
    State state;
    Page *page;
    int64_t due, heard, not_before; /* heard: or asked, or began to connect */
    char head[HEAD_MOST];
    bool in_body, last, right_status, has_length, wrong;
    size_t expected, got;
} Connection;

typedef struct { uint64_t count[BUCKETS], total; } Histogram;

static Page pages[PAGES_MOST];
static int page_count;
static uint64_t weights;
static Connection connections[CONNECTIONS_MOST];
static Histogram latency, lag;
static uint64_t good, failed, sent, body_bytes, opened;
static uint64_t by_connect, by_close, by_time, by_status, by_body;
static uint64_t by_target[TARGETS_MOST], series[SERIES_MOST][2];
static int64_t begun, rest = 10000000; /* rest: of a connection whose request has failed */
static char first_error[256], first_wrong[256], buffer[BUFFER];
static struct sockaddr_in targets[TARGETS_MOST];
static int target_count, poller;

static void die(const char *what, const char *which)
{
    fprintf(stderr, "loadgen: %s: %s%s%s\n", what, which, errno ? ": " : "",
            errno ? strerror(errno) : "");
    exit(1);
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static uint64_t splitmix64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static Page *page_of(uint64_t seed, uint64_t number)
{
    uint64_t at = splitmix64(seed + number) % weights;
    int low = 0, high = page_count - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (pages[middle].until > at)
            high = middle;
        else
            low = middle + 1;
    }
    return &pages[low];
}

static void read_plan(const char *path)
{
    FILE *plan = fopen(path, "r");
    uint64_t weight;
    char path_of[256], file[1024], place[2048];
    if (!plan)
        die("cannot read", path);
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path + 1) : 0;
    while (fscanf(plan, "%lu %255s %1023s", &weight, path_of, file) == 3) {
        Page *page = &pages[page_count++];
        strcpy(page->path, path_of);
        struct stat found;
        snprintf(place, sizeof place, "%.*s%s", folder, path, file);
        FILE *body = fopen(place, "r");
        if (!body || fstat(fileno(body), &found))
            die("cannot read", place);
        page->length = found.st_size;
        page->until = weights += weight;
        page->answer = malloc(page->length + 256);
        if (!page->answer)
            die("no memory for", place);
        int head = sprintf(page->answer, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
                           page->length);
        page->body = page->answer + head;
        page->answer_length = head + page->length;
        if (fread(page->body, 1, page->length, body) != page->length)
            die("cannot read", place);
        fclose(body);
        page->request_length = snprintf(page->request, sizeof page->request,
                                        "GET %s HTTP/1.1\r\nHost: farm\r\n\r\n", path_of);
        if (page_count == PAGES_MOST)
            break;
    }
    fclose(plan);
    errno = 0;
    if (!weights)
        die("no pages in", path);
}

static void record(Histogram *histogram, int64_t nanoseconds)
{
    uint64_t v = nanoseconds > 0 ? nanoseconds / 1000 : 0;
    int shift = v < 128 ? 0 : 57 - __builtin_clzll(v);
    uint64_t place = 64u * shift + (v >> shift);
    histogram->count[place < BUCKETS ? place : BUCKETS - 1]++;
    histogram->total++;
}

static void note(int64_t at, int which)
{
    int64_t place = (at - begun) / BUCKET;
    if (place >= 0 && place < SERIES_MOST)
        series[place][which]++;
}

static void shut(Connection *c)
{
    if (c->state != CLOSED)
        close(c->fd);
    c->state = CLOSED;
}

static void fail(Connection *c, uint64_t *kind, const char *words)
{
    if (!first_error[0])
        snprintf(first_error, sizeof first_error, "%s: %s", c->page->path, words);
    ++*kind;
    failed++;
    note(now(), 1);
    shut(c);
    c->not_before = now() + rest;
}

static void ask(Connection *c)
{
    c->heard = now();
    c->head_length = 0;
    c->in_body = c->last = c->wrong = c->has_length = false;
    c->got = c->expected = 0;
    c->state = WAITING;
    sent++;
    if (send(c->fd, c->page->request, c->page->request_length, MSG_NOSIGNAL)
        != c->page->request_length)
        fail(c, &by_close, "the connection was closed when the request was sent");
}

static void begin(Connection *c, Page *page, int64_t due)
{
    c->page = page;
    c->due = due;
    if (c->state == IDLE) {
        ask(c);
        return;
    }
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        die("no socket", "");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->state = CONNECTING;
    c->heard = now();
    opened++;
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c };
    if (epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event))
        die("epoll", "");
    if (connect(c->fd, (struct sockaddr *)&targets[c->target], sizeof *targets) == 0)
        ask(c);
    else if (errno != EINPROGRESS)
        fail(c, &by_connect, strerror(errno));
}

static void finish(Connection *c)
{
    int64_t at = now();
    if (!c->right_status) {
        char words[64];
        snprintf(words, sizeof words, "status %.3s", c->head_length > 12 ? c->head + 9 : "?");
        fail(c, &by_status, words);
        return;
    }
    if (c->wrong) {
        fail(c, &by_body, "wrong body");
        return;
    }
    good++;
    by_target[c->target]++;
    body_bytes += c->got;
    record(&latency, at - c->due);
    note(at, 0);
    if (c->last)
        shut(c);
    else
        c->state = IDLE;
}

static void hold_against(Connection *c, const char *data, size_t count)
{
    if (c->right_status && !c->wrong) {
        size_t fits = c->got < c->page->length ? c->page->length - c->got : 0;
        size_t compared = count < fits ? count : fits;
        if (c->expected != c->page->length || memcmp(c->page->body + c->got, data, compared)) {
            size_t at = 0;
            while (at < compared && c->page->body[c->got + at] == data[at])
                at++;
            c->wrong = true;
            if (!first_wrong[0] && c->expected != c->page->length)
                snprintf(first_wrong, sizeof first_wrong, "%s: %zu bytes long, expected %zu",
                         c->page->path, c->expected, c->page->length);
            else if (!first_wrong[0])
                snprintf(first_wrong, sizeof first_wrong, "%s: byte %zu is 0x%02x, expected 0x%02x",
                         c->page->path, c->got + at, (unsigned char)data[at],
                         (unsigned char)c->page->body[c->got + at]);
        }
    }
    c->got += count;
}

static void read_head(Connection *c)
{
    c->head[c->head_length] = 0;
    c->right_status = !strncmp(c->head + 8, " 200 ", 5);
    for (char *line = c->head; (line = strstr(line, "\r\n")); ) {
        line += 2;
        if (!strncasecmp(line, "content-length:", 15)) {
            c->expected = strtoul(line + 15, NULL, 10);
            c->has_length = true;
        } else if (!strncasecmp(line, "connection: close", 17))
            c->last = true;
    }
    c->in_body = true;
}

/* Returns false when the request is over, in whatever way. */
static bool take(Connection *c, const char *data, size_t count)
{
    if (!c->in_body) {
        size_t room = HEAD_MOST - 1 - c->head_length;
        size_t copied = count < room ? count : room;
        int before = c->head_length;
        memcpy(c->head + before, data, copied);
        c->head_length += copied;
        char *end = memmem(c->head, c->head_length, "\r\n\r\n", 4);
        if (!end) {
            if (c->head_length == HEAD_MOST - 1)
                fail(c, &by_close, "a head without an end");
            return c->state == WAITING;
        }
        size_t used = end + 4 - c->head - before;
        c->head_length = end + 2 - c->head;
        read_head(c);
        if (!c->has_length) {
            fail(c, c->right_status ? &by_close : &by_status, "an answer without a length");
            return false;
        }
        data += used;
        count -= used;
        if (!c->expected)
            hold_against(c, data, 0);
    }
    size_t left = c->expected - c->got, surplus = count > left ? count - left : 0;
    if (count > surplus)
        hold_against(c, data, count - surplus);
    if (surplus && c->right_status && !c->wrong) {
        c->wrong = true;
        if (!first_wrong[0])
            snprintf(first_wrong, sizeof first_wrong, "%s: %zu bytes after its end", c->page->path,
                     surplus);
    }
    if (c->got < c->expected)
        return true;
    finish(c);
    return false;
}

static void receive(Connection *c)
{
    for (;;) {
        ssize_t count = recv(c->fd, buffer, BUFFER, 0);
        if (count > 0 && c->state == WAITING) {
            c->heard = now();
            if (!take(c, buffer, count) && c->state != IDLE)
                return;
        } else if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        } else {
            if (c->state == WAITING)
                fail(c, &by_close, count < 0 ? strerror(errno) : "the connection was closed");
            else
                shut(c);
            return;
        }
    }
}

static void happened(Connection *c)
{
    if (c->state == CONNECTING) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        if (error)
            fail(c, &by_connect, strerror(error));
        else if (!getpeername(c->fd, (struct sockaddr *)&peer, &length))
            ask(c);
        return;
    }
    if (c->state != CLOSED)
        receive(c);
}

static void print_histogram(FILE *out, const char *name, const Histogram *histogram)
{
    const char *comma = "";
    fprintf(out, ",\n \"%s\": [", name);
    for (uint64_t place = 0; place < BUCKETS; place++) {
        uint64_t shift = place < 128 ? 0 : place / 64 - 1;
        uint64_t upper = (((place - 64 * shift) + 1) << shift) - 1;
        if (histogram->count[place]) {
            fprintf(out, "%s[%lu, %lu]", comma, upper, histogram->count[place]);
            comma = ", ";
        }
    }
    fprintf(out, "]");
}

static void print_text(FILE *out, const char *name, const char *text)
{
    fprintf(out, ",\n \"%s\": \"", name);
    for (; *text; text++)
        if (*text != '"' && *text != '\\' && (unsigned char)*text >= 32)
            fputc(*text, out);
    fputc('"', out);
}

static void print(const char *path, double seconds, double rate, int used)
{
    struct rusage usage;
    struct timespec wall;
    getrusage(RUSAGE_SELF, &usage);
    clock_gettime(CLOCK_REALTIME, &wall);
    double cpu = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
        + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    FILE *out = fopen(path, "w");
    if (!out)
        die("cannot write", path);
    fprintf(out, "{\"requests\": %lu, \"sent\": %lu, \"good\": %lu, \"body_bytes\": %lu,\n",
            good + failed, sent, good, body_bytes);
    fprintf(out, " \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"rate\": %.3f,\n", seconds, cpu, rate);
    fprintf(out, " \"requests_per_second\": %.3f, \"connections\": %d, \"opened\": %lu,\n",
            good / seconds, used, opened);
    fprintf(out, " \"began_unix\": %.6f,\n", wall.tv_sec + wall.tv_nsec / 1e9 - seconds);
    fprintf(out, " \"errors\": {\"connect\": %lu, \"closed\": %lu, \"timeout\": %lu, "
            "\"status\": %lu, \"body\": %lu}", by_connect, by_close, by_time, by_status, by_body);
    print_text(out, "first_error", first_error);
    print_text(out, "first_wrong", first_wrong);
    fprintf(out, ",\n \"by_target\": [");
    for (int i = 0; i < target_count; i++)
        fprintf(out, "%s%lu", i ? ", " : "", by_target[i]);
    fprintf(out, "]");
    print_histogram(out, "latency_microseconds", &latency);
    print_histogram(out, "lag_microseconds", &lag);
    int64_t last = (int64_t)(seconds * SECOND) / BUCKET;
    fprintf(out, ",\n \"interval_seconds\": %.1f, \"series\": [", BUCKET / 1e9);
    for (int64_t i = 0; i <= last && i < SERIES_MOST; i++)
        fprintf(out, "%s[%lu, %lu]", i ? ", " : "", series[i][0], series[i][1]);
    fprintf(out, "]}\n");
    if (fclose(out))
        die("cannot write", path);
}

static double rate_of(const char *path)
{
    FILE *file = fopen(path, "r");
    size_t count = file ? fread(buffer, 1, BUFFER - 1, file) : 0;
    buffer[count] = 0;
    char *found = strstr(buffer, "\"requests_per_second\": ");
    if (!found)
        die("no rate in", path);
    fclose(file);
    return strtod(found + 23, NULL);
}

static void add_target(char *text)
{
    char *colon = strrchr(text, ':');
    if (!colon || target_count == TARGETS_MOST)
        die("not ADDRESS:PORT", text);
    *colon = 0;
    struct sockaddr_in *target = &targets[target_count++];
    target->sin_family = AF_INET;
    target->sin_port = htons(atoi(colon + 1));
    if (inet_pton(AF_INET, text, &target->sin_addr) != 1)
        die("not an IPv4 address", text);
}

static void await(int64_t until)
{
    for (int i = 0; i < target_count; i++) {
        for (;;) {
            int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            int refused = connect(fd, (struct sockaddr *)&targets[i], sizeof *targets);
            close(fd);
            if (!refused)
                break;
            if (now() > until)
                die("nobody listens at", "a target");
            usleep(10000);
        }
    }
}

static void set_timer(int timer, int64_t at)
{
    struct itimerspec when = { .it_value = { at / SECOND, at % SECOND } };
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void run(const char *out, int most, uint64_t requests, double rate, uint64_t seed,
                int64_t timeout)
{
    struct epoll_event events[EVENTS], timing = { .events = EPOLLIN };
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), used = 0;
    uint64_t started = 0;
    int64_t interval = rate > 0 ? (int64_t)(SECOND / rate) : 0, exhausted = 0, scanned = 0;
    epoll_ctl(poller, EPOLL_CTL_ADD, timer, &timing);
    begun = now();
    for (int i = 0; i < most; i++)
        connections[i].target = i % target_count;
    while (good + failed < requests) {
        int64_t at = now();
        int place = 0;
        while (started < requests) {
            int64_t due = rate > 0 ? begun + (int64_t)(started * (SECOND / rate)) : at;
            if (due > at)
                break;
            while (place < most && (connections[place].state == CONNECTING
                                    || connections[place].state == WAITING
                                    || connections[place].not_before > at))
                place++;
            if (place == most) {
                exhausted = at;
                break;
            }
            used = place >= used ? place + 1 : used;
            if (rate > 0 && due > exhausted)
                record(&lag, at - due);
            begin(&connections[place], page_of(seed, started++), due);
        }
        int64_t next = at + TICK;
        if (interval && started < requests) {
            int64_t due = begun + (int64_t)(started * (SECOND / rate));
            next = due > at && due < next ? due : next;
        }
        set_timer(timer, next);
        int count = epoll_wait(poller, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr) {
                happened(events[i].data.ptr);
            } else {
                uint64_t ignored;
                (void)!read(timer, &ignored, sizeof ignored);
            }
        }
        if (at - scanned < TICK)
            continue;
        scanned = at;
        for (int i = 0; i < used; i++) {
            Connection *c = &connections[i];
            if ((c->state == WAITING || c->state == CONNECTING) && at - c->heard > timeout)
                fail(c, &by_time, "no answer in time");
        }
    }
    print(out, (now() - begun) / 1e9, rate, used);
}

static void serve(int port)
{
    struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct epoll_event events[EVENTS], event = { .events = EPOLLIN };
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 4096))
        die("cannot listen", "the port of the null server");
    event.data.fd = listener;
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(poller, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                event.data.fd = accept(listener, NULL, NULL);
                if (event.data.fd < 0)
                    continue;
                setsockopt(event.data.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                epoll_ctl(poller, EPOLL_CTL_ADD, event.data.fd, &event);
                continue;
            }
            ssize_t length = recv(fd, buffer, BUFFER - 1, 0); /* a request is one small packet */
            Page *page = NULL;
            for (int at = 0; length > 5 && at < page_count && !page; at++) {
                size_t size = strlen(pages[at].path);
                if (!strncmp(buffer + 4, pages[at].path, size) && buffer[4 + size] == ' ')
                    page = &pages[at];
            }
            for (size_t done = 0; page && done < page->answer_length; ) {
                ssize_t part = send(fd, page->answer + done, page->answer_length - done,
                                    MSG_NOSIGNAL);
                if (part <= 0)
                    page = NULL;
                else
                    done += part;
            }
            if (!page)
                close(fd);
        }
    }
}

/* A login by SSH allows 1024 open files, unless one asks for what is possible. */
static int within_limits(int wanted)
{
    enum { OTHERS = 16 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        die("cannot read", "the limit of open files");
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur < (rlim_t)wanted + OTHERS ? (int)limit.rlim_cur - OTHERS : wanted;
}

int main(int argc, char **argv)
{
    const char *plan = "", *out = "", *of = "";
    int connections_most = 64, port = 0;
    uint64_t requests = 0, seed = 1;
    double rate = 0, share = 0, seconds = 0, timeout = 5, wait = 0;
    for (int i = 2; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value)
            die("not NAME=VALUE", argv[i]);
        *value++ = 0;
        if (!strcmp(argv[i], "plan")) plan = value;
        else if (!strcmp(argv[i], "out")) out = value;
        else if (!strcmp(argv[i], "of")) of = value;
        else if (!strcmp(argv[i], "connections")) connections_most = atoi(value);
        else if (!strcmp(argv[i], "requests")) requests = strtoull(value, NULL, 10);
        else if (!strcmp(argv[i], "seed")) seed = strtoull(value, NULL, 10);
        else if (!strcmp(argv[i], "rate")) rate = strtod(value, NULL);
        else if (!strcmp(argv[i], "share")) share = strtod(value, NULL);
        else if (!strcmp(argv[i], "seconds")) seconds = strtod(value, NULL);
        else if (!strcmp(argv[i], "wait")) wait = strtod(value, NULL);
        else if (!strcmp(argv[i], "timeout")) timeout = strtod(value, NULL);
        else if (!strcmp(argv[i], "pause")) rest = (int64_t)(strtod(value, NULL) * SECOND);
        else if (!strcmp(argv[i], "port")) port = atoi(value);
        else if (!strcmp(argv[i], "target")) add_target(value);
        else die("unknown", argv[i]);
    }
    signal(SIGPIPE, SIG_IGN);
    poller = epoll_create1(EPOLL_CLOEXEC);
    read_plan(plan);
    if (argc > 1 && !strcmp(argv[1], "serve")) {
        within_limits(CONNECTIONS_MOST);
        serve(port);
    }
    if (*of)
        rate = share * rate_of(of);
    if (rate > 0 && seconds > 0)
        requests = (uint64_t)(rate * seconds);
    if (!target_count || !requests || connections_most < 1 || connections_most > CONNECTIONS_MOST)
        die("nothing to do", "targets, requests or connections are missing or too many");
    int allowed = within_limits(connections_most);
    if (rate <= 0 && allowed < connections_most) {
        fprintf(stderr, "loadgen: %d connections are more than the %d that the limit of open files "
                "allows: raise it (ulimit -Hn), or use fewer connections\n", connections_most,
                allowed);
        exit(1);
    }
    connections_most = allowed;
    if (wait > 0)
        await(now() + (int64_t)(wait * SECOND));
    run(out, connections_most, requests, rate, seed, (int64_t)(timeout * SECOND));
    return 0;
}
