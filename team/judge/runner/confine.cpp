// Starts a compiler with what it needs and no more: reading of system folders, writing into its own room, bounded memory
// and file sizes, no network, death with the judge. Trusted; the source that the compiler reads is not.
//
// usage: confine PARENT_PID MEMORY FILE_SIZE ROOM READABLE[:READABLE...] COMMAND [ARGUMENT...]
//   exit status 71: the judge is gone; 72: the command cannot be started; else the command's own
#include <cstdlib>
#include <cstring>
#include <string>

#include "sandbox.h"

namespace {

#if defined(LANDLOCK_ACCESS_FS_EXECUTE)
void permit(long rules, const std::string& path, uint64_t rights) {
    landlock_path_beneath_attr beneath{};
    beneath.parent_fd = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (beneath.parent_fd < 0) return;
    beneath.allowed_access = rights;
    if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) != 0) {
        beneath.allowed_access = rights & (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE);  // a plain file
        syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
    }
    close(beneath.parent_fd);
}

void confine_files(const std::string& room, const std::string& readable) {
    constexpr uint64_t everything = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;  // of the first version
    constexpr uint64_t reading =
        LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    landlock_ruleset_attr attributes{};
    attributes.handled_access_fs = everything;
    long rules = syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0);
    if (rules < 0) return;
    for (size_t at = 0; at < readable.size();) {
        size_t end = std::min(readable.find(':', at), readable.size());
        permit(rules, readable.substr(at, end - at), reading);
        at = end + 1;
    }
    permit(rules, room, everything);
    permit(rules, "/dev/null", LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE);
    permit(rules, "/dev/urandom", LANDLOCK_ACCESS_FS_READ_FILE);
    syscall(SYS_landlock_restrict_self, rules, 0);
    close(static_cast<int>(rules));
}
#else
void confine_files(const std::string&, const std::string&) {}
#endif

void confine_calls() {
    if (sandbox::kArch == 0) return;
    sandbox::Filter filter;
    for (int number : {SYS_socket, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_bpf, SYS_mount,
                       SYS_perf_event_open, SYS_keyctl, SYS_setsid}) {
        filter.refuse(number);
    }
    filter.install();
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 7) return 64;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != atoi(arguments[1])) return 71;
    sandbox::limit(RLIMIT_AS, strtoull(arguments[2], nullptr, 10));
    sandbox::limit(RLIMIT_FSIZE, strtoull(arguments[3], nullptr, 10));
    sandbox::limit(RLIMIT_CORE, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
        confine_files(arguments[4], arguments[5]);
        confine_calls();
    }
    execvp(arguments[6], arguments + 6);
    return 72;
}
