/* SPDX-License-Identifier: BSD-3-Clause */
/* The fat binary of kernels.cu as data of the program. */
    .section .rodata
    .globl kernels_image
    .balign 16
kernels_image:
    .incbin "kernels.fatbin"
    .balign 16
    .section .note.GNU-stack, "", %progbits
