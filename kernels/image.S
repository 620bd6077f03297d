/* SPDX-License-Identifier: BSD-3-Clause */
/* The fat binary of kernels.cu, and its PTX as a text that ends with NUL, as data of the program. */
#ifdef __CET__
#include <cet.h> /* without its note no file of the program counts as protected */
#endif
    .section .rodata
    .globl kernels_image
    .balign 16
kernels_image:
    .incbin "kernels.fatbin"
    .balign 16
    .globl kernels_ptx
kernels_ptx:
    .incbin "kernels.ptx"
    .byte 0
    .balign 16
    .section .note.GNU-stack, "", %progbits
