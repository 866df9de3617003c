/* Prints a row of src/ruby/rows.rs: where this version of Ruby keeps what is read.
   Compiled against the internal headers of that version, and a build's config.h; see generate/ruby. */
#include "ruby/config.h"
#include "version.h"
#include "ruby/ruby.h"
#include "internal.h"
#include "vm_core.h"
#include "iseq.h"
#include "method.h"
#include "id.h"
#include "ruby/st.h"
#include <stddef.h>
#include <stdio.h>
#define VERSION (RUBY_API_VERSION_MAJOR * 100 + RUBY_API_VERSION_MINOR)
#if VERSION >= 300
#include "internal/class.h"
#include "internal/imemo.h"
#include "ractor_core.h"
#endif
#if VERSION == 302
#include "shape.h"
#endif

#define FIELD(name, value) printf("        " name ": %ld,\n", (long)(value))
#define BODY(member) offsetof(struct rb_iseq_constant_body, member)

/* As in st.c. */
struct entry { st_data_t hash, key, record; };

/* Threads: of a ractor, or of the virtual machine. */
static void threads(void) {
#if VERSION >= 300
    FIELD("machine_ractors", offsetof(rb_vm_t, ractor.set));
    FIELD("ractor_node", offsetof(rb_ractor_t, vmlr_node));
    FIELD("ractor_threads", offsetof(rb_ractor_t, threads.set));
    FIELD("thread_node", offsetof(rb_thread_t, lt_node));
#else
    FIELD("machine_ractors", 0);
    FIELD("ractor_node", 0);
    FIELD("ractor_threads", offsetof(rb_vm_t, living_threads));
    FIELD("thread_node", offsetof(rb_thread_t, vmlt_node));
#endif
    FIELD("thread_context", offsetof(rb_thread_t, ec));
#if VERSION >= 302
    FIELD("thread_native", offsetof(rb_thread_t, nt));
    FIELD("native_pointer", offsetof(struct rb_native_thread, thread_id));
#else
    FIELD("thread_native", 0);
    FIELD("native_pointer", offsetof(rb_thread_t, thread_id));
#endif
#if VERSION >= 303
    FIELD("native_tid", offsetof(struct rb_native_thread, tid));
#else
    /* 3.1 and 3.2 have an id, too, but in a forked child the first thread keeps that of the parent's. */
    FIELD("native_tid", 0);
#endif
}

static void classes(void) {
#if VERSION == 302
    FIELD("class_extra", 0);
    FIELD("id_attached", id__attached__);
    FIELD("class_variables", sizeof(struct RClass) + offsetof(struct rb_classext_struct, iv_ptr));
    FIELD("class_path", 0);
    FIELD("class_attached", 0);
#elif VERSION >= 303
    FIELD("class_extra", 0);
    FIELD("id_attached", 0);
    FIELD("class_variables", 0);
    FIELD("class_path", offsetof(struct RClass_and_rb_classext_t, classext.classpath));
    FIELD("class_attached", offsetof(struct RClass_and_rb_classext_t, classext.as.singleton_class.attached_object));
#else
    FIELD("class_extra", offsetof(struct RClass, ptr));
    FIELD("id_attached", id__attached__);
    FIELD("class_variables", offsetof(struct rb_classext_struct, iv_tbl));
    FIELD("class_path", 0);
    FIELD("class_attached", 0);
#endif
#if VERSION == 302
    FIELD("machine_shapes", offsetof(rb_vm_t, shape_list));
    FIELD("shape_bytes", sizeof(rb_shape_t));
    FIELD("shape_name", offsetof(rb_shape_t, edge_name));
    FIELD("shape_count", offsetof(rb_shape_t, next_iv_index));
    FIELD("shape_parent", offsetof(rb_shape_t, parent_id));
#else
    FIELD("machine_shapes", 0);
    FIELD("shape_bytes", 0);
    FIELD("shape_name", 0);
    FIELD("shape_count", 0);
    FIELD("shape_parent", 0);
#endif
    FIELD("last_operator", tLAST_OP_ID);
    FIELD("table_start", offsetof(struct st_table, entries_start));
    FIELD("table_end", offsetof(struct st_table, entries_bound));
    FIELD("table_entries", offsetof(struct st_table, entries));
    FIELD("entry_bytes", sizeof(struct entry));
    FIELD("entry_key", offsetof(struct entry, key));
    FIELD("entry_value", offsetof(struct entry, record));
    FIELD("flag_singleton", FL_SINGLETON);
    /* As in gc.c. */
    FIELD("moved_to", VERSION >= 300 ? 16 : 8);
}

static void values(void) {
    FIELD("flag_string_outside", RSTRING_NOEMBED);
    FIELD("string_pointer", offsetof(struct RString, as.heap.ptr));
#if VERSION >= 302
#if VERSION == 302
    FIELD("string_length", offsetof(struct RString, as.heap.len));
#else
    FIELD("string_length", offsetof(struct RString, len));
#endif
    FIELD("string_inside", offsetof(struct RString, as.embed.ary));
    FIELD("string_inside_shift", 0);
    FIELD("string_inside_mask", 0);
#else
    FIELD("string_length", offsetof(struct RString, as.heap.len));
    FIELD("string_inside", offsetof(struct RString, as));
    FIELD("string_inside_shift", RSTRING_EMBED_LEN_SHIFT);
    FIELD("string_inside_mask", RSTRING_EMBED_LEN_MASK >> RSTRING_EMBED_LEN_SHIFT);
#endif
    FIELD("flag_array_inside", RARRAY_EMBED_FLAG);
    FIELD("array_pointer", offsetof(struct RArray, as.heap.ptr));
    FIELD("array_inside", offsetof(struct RArray, as.ary));
}

int main(void) {
    printf("    // %d.%d.%d\n    RubyRow {\n", RUBY_API_VERSION_MAJOR, RUBY_API_VERSION_MINOR, RUBY_VERSION_TEENY);
    FIELD("major", RUBY_API_VERSION_MAJOR);
    FIELD("minor", RUBY_API_VERSION_MINOR);
    threads();
    FIELD("context_stack", offsetof(rb_execution_context_t, vm_stack));
    FIELD("context_stack_words", offsetof(rb_execution_context_t, vm_stack_size));
    FIELD("context_frame", offsetof(rb_execution_context_t, cfp));
    FIELD("context_thread", offsetof(rb_execution_context_t, thread_ptr));
    FIELD("frame_pc", offsetof(rb_control_frame_t, pc));
    FIELD("frame_iseq", offsetof(rb_control_frame_t, iseq));
    FIELD("frame_environment", offsetof(rb_control_frame_t, ep));
    FIELD("frame_bytes", sizeof(rb_control_frame_t));
    FIELD("iseq_body", offsetof(rb_iseq_t, body));
    FIELD("body_type", BODY(type));
    FIELD("body_size", BODY(iseq_size));
    FIELD("body_code", BODY(iseq_encoded));
    FIELD("body_path", BODY(location.pathobj));
    FIELD("body_base_label", BODY(location.base_label));
    FIELD("body_label", BODY(location.label));
    FIELD("body_lines", BODY(insns_info.body));
    FIELD("body_line_count", BODY(insns_info.size));
    FIELD("body_index", BODY(insns_info.succ_index_table));
    FIELD("body_parent_iseq", BODY(parent_iseq));
    FIELD("body_local_iseq", BODY(local_iseq));
    FIELD("line_bytes", sizeof(struct iseq_insn_info_entry));
    FIELD("line_number", offsetof(struct iseq_insn_info_entry, line_no));
    FIELD("method_definition", offsetof(rb_callable_method_entry_t, def));
    FIELD("method_called", offsetof(rb_callable_method_entry_t, called_id));
    FIELD("method_owner", offsetof(rb_callable_method_entry_t, owner));
    FIELD("definition_iseq", offsetof(rb_method_definition_t, body.iseq.iseqptr));
    FIELD("definition_name", offsetof(rb_method_definition_t, original_id));
    FIELD("definition_serial", offsetof(rb_method_definition_t, method_serial));
    classes();
    values();
    printf("    },\n");
    return 0;
}
