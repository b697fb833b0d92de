"""What a C++ or CUDA kernel may include, call and declare. Data only; ``native`` applies it."""

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STANDARD_HEADERS = _words(
    """algorithm any array atomic barrier bit bitset cassert ccomplex cctype cerrno cfenv cfloat charconv cinttypes
    ciso646 climits cmath compare complex concepts condition_variable cstdarg cstdbool cstddef cstdint cstdio cstdlib
    cstring ctgmath deque exception execution forward_list functional future initializer_list iostream iterator latch
    limits list map memory memory_resource mutex new numbers numeric optional queue random ranges ratio semaphore set
    shared_mutex span sstream stack stdexcept string string_view thread tuple type_traits typeindex typeinfo
    unordered_map unordered_set utility valarray variant vector version assert.h complex.h ctype.h errno.h fenv.h
    float.h inttypes.h limits.h math.h stdalign.h stdarg.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h
    tgmath.h omp.h malloc.h alloca.h arm_neon.h arm_sve.h arm_fp16.h arm_bf16.h x86intrin.h experimental/simd"""
)
HEADERS = re.compile(
    r"[a-z]mmintrin\.h|avx\w*intrin\.h|fmaintrin\.h"
    r"|cuda(_runtime(_api)?|_fp16|_bf16|_fp8|_fp6|_fp4|_pipeline\w*|_awbarrier\w*|_device_runtime_api|Typedefs)?\.h(pp)?"
    r"|cooperative_groups(/[\w/]+)?\.h|mma\.h|cuda/[\w/]+|cub/[\w/]+\.cuh|thrust/[\w/]+\.h|(cute|cutlass)/[\w/]+\.hp?p?"
    r"|device_launch_parameters\.h|device_functions\.h|device_atomic_functions\.h|vector_(types|functions)\.h"
    r"|math_(constants|functions)\.h|sm_\d+_\w+\.hp?p?|curand_kernel\.h|nv/target"
)

# Names that mean one thing only: no kernel needs them, wherever they stand.
NAMES = _words(
    """vfork clone3 execv execve execvp execvpe execl execlp execle execveat fexecve posix_spawn posix_spawnp
    popen pclose waitpid waitid wait3 wait4 daemon setsid setpgid getppid getpid setuid setgid setresuid setresgid
    ptrace prctl arch_prctl seccomp personality sigaction sigprocmask sigqueue sigaltstack pthread_kill pthread_sigmask
    pthread_atfork tgkill tkill sched_setaffinity sched_setscheduler setpriority setrlimit prlimit prlimit64 syscall
    _exit _Exit quick_exit at_quick_exit atexit on_exit __cxa_atexit longjmp siglongjmp _longjmp setjmp _setjmp
    sigsetjmp setcontext makecontext swapcontext getcontext dlopen dlmopen dlsym dlvsym dladdr dladdr1 dlinfo dlclose
    dlerror dl_iterate_phdr _r_debug _DYNAMIC _GLOBAL_OFFSET_TABLE_ __ehdr_start __libc_start_main __libc_dlsym
    __libc_dlopen_mode getenv secure_getenv setenv putenv unsetenv clearenv environ __environ _environ getauxval fopen
    fopen64 freopen fdopen fread fwrite fclose fileno setvbuf tmpfile tmpnam mkstemp mkdtemp openat openat2 open64 creat
    opendir fdopendir readdir scandir unlink unlinkat rmdir mkdir symlink readlink chdir fchdir chroot mount umount
    umount2 ioctl fcntl pread pwrite pread64 pwrite64 readv writev preadv pwritev process_vm_readv process_vm_writev
    sendfile vmsplice ftruncate memfd_create mmap mmap64 munmap mprotect pkey_mprotect mremap remap_file_pages
    shm_open shm_unlink shmget shmat msync madvise mlock mlockall ofstream ifstream fstream basic_ofstream
    basic_ifstream basic_fstream filebuf basic_filebuf filesystem socketpair getaddrinfo gethostbyname inet_addr sendto
    recvfrom sendmsg recvmsg epoll_create epoll_create1 epoll_ctl eventfd signalfd timerfd_create inotify_init
    io_uring_setup perf_event_open userfaultfd bpf keyctl clock_gettime clock_settime clock_getres gettimeofday
    timespec_get nanosleep clock_nanosleep usleep chrono sleep_for sleep_until __rdtsc _rdtsc __rdtscp __rdpmc
    backtrace backtrace_symbols __has_include __has_include_next __has_embed
    cudaLaunchHostFunc cudaStreamAddCallback cudaDeviceReset cudaThreadExit cudaProfilerStart cudaProfilerStop
    cudaDeviceEnablePeerAccess cudaMemcpyPeer cudaMemcpyPeerAsync cudaHostRegister cudaStreamIsCapturing
    cudaThreadExchangeStreamCaptureMode cudaEventElapsedTime cudaLimitPersistingL2CacheSize accessPolicyWindow
    cudaStreamAttributeAccessPolicyWindow cudaLaunchAttributeAccessPolicyWindow cudaCtxResetPersistingL2Cache"""
)
PREFIXES = re.compile(
    r"__libc_\w+|_dl_\w+|_rtld_\w+|SYS_\w+|__NR_\w+|PTRACE_\w+|__builtin_(return|frame)_address|__builtin_ia32_rd(tsc|pmc)\w*"
    r"|__builtin_(apply\w*|extract_return_addr|readcyclecounter|setjmp|longjmp)|cuda(Ipc|Import|Export)\w+"
    r"|cudaStreamGetCaptureInfo\w*|cudaStreamUpdateCaptureDependencies\w*|cudnn\w+|cublas\w+|nvml\w+"
)
DRIVER_CALL = re.compile(r"cu[A-Z][a-z]\w*")  # the driver's functions: only the makers of tensor maps
DRIVER_ALLOWED = re.compile(r"cuTensorMap(Encode|Replace)\w*")
ENTRY_POINTS = re.compile(r"cudaGetDriverEntryPoint(ByVersion)?")

# A kernel bound by TVM-FFI may include its headers. It may not change what the caller set up, nor reach what others
# have registered or have on disk.
TVM_FFI_HEADERS = re.compile(r"tvm/ffi/[\w/]+\.h|dlpack/dlpack\.h")
TVM_FFI_NAMES = _words(
    """TVMFFIEnvSetStream TVMFFIEnvSetDLPackManagedTensorAllocator TVMFFIEnvRegisterCAPI TVMFFIEnvModLookupFromImports
    TVMFFIEnvModRegisterContextSymbol TVMFFIEnvModRegisterSystemLibSymbol TVMFFIFunctionGetGlobal
    TVMFFIFunctionSetGlobal GetGlobal GetGlobalRequired SetGlobal LoadFromFile"""
)

# Names that a kernel may well give to something of its own; refused where the system's are meant.
SYSTEM_CALLS = _words(
    """fork splice system kill clone signal raise open close read write dup dup2 dup3 pipe pipe2 link rename select poll
    wait sleep pause access stat fstat lstat truncate socket connect listen accept send recv alarm time getline gets
    getchar scanf fscanf"""
)
NOT_A_TYPE = _words("return case goto else throw delete new co_return co_await co_yield and or not xor do sizeof in")

ATTRIBUTES = _words(
    """global device host shared constant managed grid_constant launch_bounds cluster_dims maxnreg block_size aligned
    always_inline noinline unused maybe_unused vector_size ext_vector_type restrict nodiscard warn_unused_result
    may_alias fallthrough likely unlikely pure const hot cold flatten packed nothrow noreturn deprecated assume_aligned
    malloc alloc_size alloc_align returns_nonnull nonnull target target_clones no_unique_address assume nv_pure leaf
    artificial gnu_inline no_sanitize_address novector noclone tune access format align carries_dependency"""
)
ATTRIBUTE_SPACES = _words("gnu __gnu__ nv clang using omp directive sequence")

# The first words of a pragma.
PRAGMAS = re.compile(
    r"once\b|omp\b|unroll\b|nounroll\b|GCC\s+(ivdep|unroll|novector|diagnostic|target|push_options|pop_options)\b"
    r"|STDC\s+FP_CONTRACT\b|nv_(diag\w+|exec_check_disable)\b|diag_(suppress|default|warning|remark)\b|clang\s+loop\b"
    r"|ivdep\b|vector\b|simd\b|acc\b|hd_warning_disable\b|message\b|push_macro\b|pop_macro\b|region\b|endregion\b"
)
OPTIMISE = re.compile(r"GCC\s+optimize\s*\(?\s*(.*?)\)?\s*\Z", re.DOTALL)
OPTIONS = re.compile(
    r"-?O[0-3]|[0-3]|(-f)?(tree-)?(no-)?(vectorize|unroll-loops|unroll-all-loops|loop-\w+|prefetch-loop\S*)"
)
LOOSE_OPTIONS = re.compile(r"-?Ofast|(-f)?fast-math|(-f)?(associative|unsafe)-math\S*|(-f)?no-\w+-math\S*")

# What inline assembly may not say: directives of the assembler, and instructions that leave the kernel.
DIRECTIVES = re.compile(
    r"(?<![\w.%])\.(incbin|include|section|pushsection|popsection|subsection|previous|text|data|bss|globl|weak|weakref"
    r"|symver|set|equ|equiv|type|size|byte|short|word|hword|int|long|quad|octa|[248]byte|ascii|asciz|string\d*|macro"
    r"|endm|rept|irpc?|altmacro|org|fill|zero|skip|space|code(16|32|64)|reloc|comm|lcomm|global(?=\s+[\w$.]+\s*?(;|\n|\Z)))\b"
)
INSTRUCTIONS = re.compile(
    r"\b(syscall|sysenter|sysret|svc|rdtscp?|rdpmc|rdpru|rdmsr|wrmsr|[rw]r[fg]sbase|vmcall|vmmcall|xbegin|iretq?|hlt"
    r"|cntvct_el0)\b|\bint\s*(\$|\\\$)?\s*(0x80|128|3)\b|%%?[fg]s:"
)
ALONE = _words("pause nop vzeroupper vzeroall emms mfence lfence sfence trap exit ret brkpt membar yield isb")
