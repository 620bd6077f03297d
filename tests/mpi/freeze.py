#!/usr/bin/env python3
"""freeze.py KIND PID - the first thread of a process stands still where it is; its other threads live on.

stop: ptrace holds it, as a debugger does, until the process ends.  spin: it goes on in a loop of one instruction, with
its stack as it was (x86-64).  "frozen" is printed when this is so.  Exit code 77: not possible here."""
import ctypes
import errno
import os
import platform
import sys

SEIZE, INTERRUPT, DETACH, GETREGS, SETREGS, ALL = 0x4206, 0x4207, 17, 12, 13, 0x40000000
ORIG_RAX, RIP, WORDS = 15, 16, 27  # struct user_regs_struct of x86-64

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(what, pid, data=None):
    if libc.ptrace(what, pid, None, data) < 0:
        why = ctypes.get_errno()
        print(f"ptrace: {os.strerror(why)}", file=sys.stderr)
        sys.exit(77 if why == errno.EPERM else 1)


def find_loop(pid):
    """Return the address of a "jump to itself" (eb fe) in the code of the process."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
        for w in (line.split() for line in maps):
            if "x" in w[1] and w[-1][0] != "[":
                start, end = (int(x, 16) for x in w[0].split("-"))
                mem.seek(start)
                at = mem.read(end - start).find(b"\xeb\xfe")
                if at >= 0:
                    return start + at
    print("no such instruction", file=sys.stderr)
    sys.exit(77)


def main(kind, pid):
    if kind == "spin" and platform.machine() != "x86_64":
        sys.exit(77)
    ptrace(SEIZE, pid)
    ptrace(INTERRUPT, pid)
    os.waitpid(pid, ALL)
    if kind == "spin":
        regs = (ctypes.c_ulonglong * WORDS)()
        ptrace(GETREGS, pid, ctypes.cast(regs, ctypes.c_void_p))
        regs[RIP] = find_loop(pid)
        regs[ORIG_RAX] = 2**64 - 1  # the kernel begins no system call again
        ptrace(SETREGS, pid, ctypes.cast(regs, ctypes.c_void_p))
        ptrace(DETACH, pid)
    print("frozen", flush=True)
    if kind == "spin":
        return
    while os.WIFSTOPPED(os.waitpid(pid, ALL)[1]):
        pass


main(sys.argv[1], int(sys.argv[2]))
