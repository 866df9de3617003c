/* Prints the version, and the fields of a row of src/perl/rows.rs: where this version of Perl keeps what is read. Compiled against
   the public headers of that version; see generate/perl. */
#define PERL_NO_GET_CONTEXT
#include "EXTERN.h"
#include "perl.h"
#include <stddef.h>
#include <stdio.h>

#define FIELD(name, value) printf(name ": %ld,\n", (long)(value))
#ifdef MULTIPLICITY
#define OF_INTERPRETER(field) offsetof(struct interpreter, field)
#define INTERPRETER_BYTES sizeof(struct interpreter)
#else
#define OF_INTERPRETER(field) 0
#define INTERPRETER_BYTES 0
#endif
#ifdef SVphv_HasAUX
#define HASH_HAS_NAME SVphv_HasAUX
#else
#define HASH_HAS_NAME SVf_OOK
#endif
#ifndef CXp_TRY
#define CXp_TRY 0
#endif
#ifndef CVf_NAMED
#define CVf_NAMED 0
#define xcv_gv_u xcv_gv
#endif
#ifndef CVf_LEXICAL
#define CVf_LEXICAL 0
#endif

#if PERL_VERSION < 14
#define xcv_depth xiv_u
#define xhv_name_u xhv_name
#endif
#if PERL_VERSION < 12
#define blk_format blk_sub
#endif
#if PERL_VERSION < 10
#define Iop Top
#define Icurcop Tcurcop
#define Icurstackinfo Tcurstackinfo
#define Itop_env Ttop_env
#define RETURN(kind) 0
#define VALUE_DATA offsetof(XPVGV, xgv_gp)
#define GLOB_NAME offsetof(XPVGV, xgv_name)
#define GLOB_STASH offsetof(XPVGV, xgv_stash)
#define xcv_start_u xcv_start
#undef xcv_depth
#define EXTRA_NAME offsetof(XPVHV, xhv_name)
#else
#define RETURN(kind) offsetof(PERL_CONTEXT, kind.retop)
#define VALUE_DATA offsetof(SV, sv_u)
#define GLOB_NAME offsetof(XPVGV, xiv_u.xivu_namehek)
#define GLOB_STASH offsetof(XPVGV, xnv_u.xgv_stash)
#define EXTRA_NAME offsetof(struct xpvhv_aux, xhv_name_u)
#endif

int main(void) {
    printf("perl %d.%d.%d\nversion: %d,\n", PERL_REVISION, PERL_VERSION, PERL_SUBVERSION, PERL_VERSION);
    FIELD("interpreter_bytes", INTERPRETER_BYTES);
    FIELD("op", OF_INTERPRETER(Iop));
    FIELD("line", OF_INTERPRETER(Icurcop));
    FIELD("compiling", OF_INTERPRETER(Icompiling));
    FIELD("stack_info", OF_INTERPRETER(Icurstackinfo));
    FIELD("jump", OF_INTERPRETER(Itop_env));
    FIELD("info_contexts", offsetof(PERL_SI, si_cxstack));
    FIELD("info_previous", offsetof(PERL_SI, si_prev));
    FIELD("info_last", offsetof(PERL_SI, si_cxix));
    FIELD("info_type", offsetof(PERL_SI, si_type));
    FIELD("context_bytes", sizeof(PERL_CONTEXT));
    FIELD("context_type", offsetof(PERL_CONTEXT, cx_type));
    FIELD("context_line", offsetof(PERL_CONTEXT, blk_oldcop));
    FIELD("is_sub", CXt_SUB);
    FIELD("is_format", CXt_FORMAT);
    FIELD("is_eval", CXt_EVAL);
    FIELD("sub_return", RETURN(blk_sub));
    FIELD("sub_code", offsetof(PERL_CONTEXT, blk_sub.cv));
    FIELD("sub_depth_before", offsetof(PERL_CONTEXT, blk_sub.olddepth));
    FIELD("format_code", offsetof(PERL_CONTEXT, blk_format.cv));
    FIELD("eval_return", RETURN(blk_eval));
#if PERL_VERSION < 10
    printf("returns: Some(Returns { stack: %ld, of_context: %ld }),\n", (long)OF_INTERPRETER(Tretstack), (long)offsetof(PERL_CONTEXT, blk_oldretsp));
#else
    printf("returns: None,\n");
#endif
    FIELD("is_try", CXp_TRY);
    /* A bit field: behind op_targ, in all versions. */
    FIELD("op_type", offsetof(OP, op_targ) + sizeof(PADOFFSET));
    FIELD("line_number", offsetof(COP, cop_line));
#ifdef USE_ITHREADS
    FIELD("line_file", offsetof(COP, cop_file));
#else
    FIELD("line_file", offsetof(COP, cop_filegv));
#endif
    FIELD("value_flags", offsetof(SV, sv_flags));
    FIELD("value_data", VALUE_DATA);
    FIELD("code_type", SVt_PVCV);
    FIELD("glob_type", SVt_PVGV);
    FIELD("hash_type", SVt_PVHV);
    FIELD("code_start", offsetof(XPVCV, xcv_start_u));
    FIELD("code_depth", offsetof(XPVCV, xcv_depth));
    FIELD("code_flags", offsetof(XPVCV, xcv_flags));
    FIELD("code_stash", offsetof(XPVCV, xcv_stash));
    FIELD("code_name", offsetof(XPVCV, xcv_gv_u));
    FIELD("is_named", CVf_NAMED);
    FIELD("is_lexical", CVf_LEXICAL);
    FIELD("glob_name", GLOB_NAME);
    FIELD("glob_stash", GLOB_STASH);
    FIELD("glob_effective", offsetof(GP, gp_egv));
    FIELD("key_bytes", offsetof(struct hek, hek_len));
    FIELD("key_text", offsetof(struct hek, hek_key));
    FIELD("hash_last", offsetof(XPVHV, xhv_max));
    FIELD("hash_has_name", HASH_HAS_NAME);
#if PERL_VERSION >= 36
    printf("hash_extra: Some(%ld),\n", (long)offsetof(struct xpvhv_with_aux, xhv_aux));
#else
    printf("hash_extra: None,\n");
#endif
    FIELD("extra_name", EXTRA_NAME);
#if PERL_VERSION >= 14
    FIELD("extra_names", offsetof(struct xpvhv_aux, xhv_name_count));
#else
    FIELD("extra_names", 0);
#endif
    printf("has_texts: %s,\n", PERL_VERSION < 10 ? "true" : "false");
    return 0;
}
