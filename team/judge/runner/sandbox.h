// What the runner takes from itself before it loads foreign code. Every layer is best effort and reported by name, so
// that `kernelteam doctor` can say which are active: none of them is what makes a measurement true (the judge's own
// clock, buffers and reference do that); they bound the damage.
#pragma once
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>
#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#endif

namespace sandbox {

inline void limit(__rlimit_resource what, rlim_t value) {
    rlimit both{value, value};
    setrlimit(what, &both);
}

inline void limits(uint64_t address_space, uint64_t files, bool own_uid, uint64_t file_size = 0) {
    limit(RLIMIT_AS, address_space);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, file_size);
    limit(RLIMIT_NOFILE, files);
    limit(RLIMIT_CPU, 1200);  // seconds; the judge's deadlines come first
    limit(RLIMIT_MSGQUEUE, 0);
    if (own_uid) limit(RLIMIT_NPROC, 512);  // counted per uid, so only where the uid is nobody else's
}

// Leave root for a uid that owns nothing. The process stays dumpable so that its own /proc/self/fd can be opened.
inline bool drop_uid() {
    constexpr uid_t nobody = 65534;
    if (geteuid() != 0 || setgroups(0, nullptr) != 0) return false;
    if (setresgid(nobody, nobody, nobody) != 0 || setresuid(nobody, nobody, nobody) != 0) return false;
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    return true;
}

#if defined(__x86_64__)
constexpr uint32_t kArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArch = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArch = 0;
#endif

class Filter {
  public:
    Filter() {
        load(offsetof(seccomp_data, arch));
        skip_unless_equal(kArch, 0, 1);
        put(BPF_JMP | BPF_JA, 1);
        deny(EPERM);
        load(offsetof(seccomp_data, nr));
    }

    void refuse(int number, int error = EPERM) {
        skip_unless_equal(static_cast<uint32_t>(number), 0, 1);
        deny(error);
    }

    // Refuse `number` unless the low 32 bits of argument `index` equal `value`.
    void refuse_unless(int number, unsigned index, uint32_t value) {
        skip_unless_equal(static_cast<uint32_t>(number), 0, 4);
        load(argument(index));
        skip_unless_equal(value, 1, 0);
        deny(EPERM);
        put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }

    // Refuse `number` when the low 32 bits of argument `index` equal `value`.
    void refuse_if(int number, unsigned index, uint32_t value) {
        skip_unless_equal(static_cast<uint32_t>(number), 0, 4);
        load(argument(index));
        skip_unless_equal(value, 0, 1);
        deny(EPERM);
        put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }

    // Refuse `number` unless argument `index` has one of `bits` set.
    void refuse_without(int number, unsigned index, uint32_t bits) {
        skip_unless_equal(static_cast<uint32_t>(number), 0, 4);
        load(argument(index));
        code_.push_back({BPF_JMP | BPF_JSET | BPF_K, 1, 0, bits});
        deny(EPERM);
        put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }

    bool install() {
        put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
    }

  private:
    static uint32_t argument(unsigned index) {
        return static_cast<uint32_t>(offsetof(seccomp_data, args) + index * sizeof(uint64_t));
    }
    void load(uint32_t offset) { put(BPF_LD | BPF_W | BPF_ABS, offset); }
    void deny(int error) { put(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)); }
    void put(int code, uint32_t k) { code_.push_back({static_cast<uint16_t>(code), 0, 0, k}); }
    void skip_unless_equal(uint32_t value, uint8_t equal, uint8_t other) {
        code_.push_back({BPF_JMP | BPF_JEQ | BPF_K, equal, other, value});
    }

    std::vector<sock_filter> code_;
};

// `starts` processes of its own: a compiler may, in its process group; a kernel may not.
inline bool filter_calls(bool starts = false) {
    if (kArch == 0) return false;
    Filter filter;
    const auto self = static_cast<uint32_t>(getpid());
    for (int number : {SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_socket,
                       SYS_socketpair, SYS_tkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_setsid, SYS_setpgid,
                       SYS_sched_setaffinity, SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr,
                       SYS_setpriority, SYS_setrlimit, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_mount,
                       SYS_umount2, SYS_unshare, SYS_setns, SYS_shmget, SYS_shmat, SYS_msgget, SYS_semget, SYS_mq_open,
                       SYS_keyctl, SYS_add_key, SYS_request_key, SYS_clock_settime, SYS_adjtimex, SYS_pidfd_open, 425,
                       SYS_pidfd_send_signal, SYS_inotify_init1, SYS_fanotify_init, SYS_kexec_load, SYS_reboot}) {
        filter.refuse(number);
    }
    if (!starts) {
        filter.refuse(SYS_execve);
        filter.refuse(SYS_execveat);
#if defined(__x86_64__)
        filter.refuse(SYS_fork);
        filter.refuse(SYS_vfork);
#endif
        filter.refuse(SYS_clone3, ENOSYS);  // its flags are in memory; libc falls back to clone, whose flags are not
        filter.refuse_without(SYS_clone, 0, CLONE_THREAD);
    }
    filter.refuse_unless(SYS_kill, 0, self);
    filter.refuse_unless(SYS_tgkill, 0, self);
    filter.refuse_unless(SYS_prlimit64, 2, 0);  // reading a limit stays allowed, setting one does not
    filter.refuse_if(SYS_prctl, 0, PR_SET_PDEATHSIG);
    return filter.install();
}

#if defined(LANDLOCK_ACCESS_FS_EXECUTE)
// Let `path`, and what lies beneath it, be used in the way of `access`; a path that is not there is passed over.
inline void permit(long rules, const char* path, uint64_t access) {
    landlock_path_beneath_attr beneath{};
    beneath.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (beneath.parent_fd < 0) return;
    beneath.allowed_access = access;
    if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) != 0) {
        // a plain file takes no directory rights
        beneath.allowed_access = access & (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE);
        syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
    }
    close(beneath.parent_fd);
}

inline bool landlock(const std::vector<std::string>& devices, const std::vector<std::string>& readable = {},
                     const std::vector<std::string>& writable = {}) {
    constexpr uint64_t reading =
        LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    landlock_ruleset_attr attributes{};
    attributes.handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;  // everything of the first version
    long rules = syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0);
    if (rules < 0) return false;
    for (const char* path : {"/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/sys/devices/system/cpu", "/proc/cpuinfo",
                             "/proc/meminfo", "/proc/stat"}) {
        permit(rules, path, reading);
    }
    for (const std::string& path : readable) permit(rules, path.c_str(), reading);
    for (const std::string& path : writable) permit(rules, path.c_str(), attributes.handled_access_fs);
    for (const std::string& path : devices) {
        permit(rules, path.c_str(), LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE);
    }
    bool active = syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    close(static_cast<int>(rules));
    return active;
}
#else
inline bool landlock(const std::vector<std::string>&, const std::vector<std::string>& = {},
                     const std::vector<std::string>& = {}) {
    return false;
}
#endif

// The first half, before anything of the machine is opened: another uid, and death with the parent.
inline std::string begin(bool keep_uid) {
    std::string active = "rlimits";
    if (!keep_uid && drop_uid()) active += " uid";
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);  // after the uid change, which clears it
    return active;
}

// The second half, before foreign code is loaded; the names of all active layers, separated by spaces. `devices` are
// device files that may still be opened.
inline std::string seal(std::string active, uint64_t address_space, uint64_t files,
                        const std::vector<std::string>& devices) {
    limits(address_space, files, active.find(" uid") != std::string::npos);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) active += " no_new_privs";
    if (landlock(devices)) active += " landlock";
    if (filter_calls()) active += " seccomp";
    return active;
}

// Apply all layers at once.
inline std::string enter(uint64_t address_space) { return seal(begin(false), address_space, 64, {}); }

}  // namespace sandbox
