/* Hand-written assembly: a function with many labels in it that have sizes, as
   interpreters have them, and code behind these and behind padding. */
__asm__(".text\n"
        ".macro function name\n .globl \\name\n .type \\name, %function\n \\name:\n .endm\n"
        ".macro end name\n .size \\name, .-\\name\n .endm\n"
        "function outer\n nop\n"
        "function inner\n"
        ".irp number, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19\n"
        "function label_\\number\n nop\n end label_\\number\n"
        ".endr\n"
        "behind_labels: nop\n"
        "end inner\n"
        "behind_inner: nop\n"
        "end outer\n"
        "function behind_outer\n nop\n end behind_outer\n"
        ".balign 16\n nop\n .balign 16\n"
        "function behind_padding\n nop\n end behind_padding\n");
