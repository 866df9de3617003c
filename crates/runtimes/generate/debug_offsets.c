/* Prints an entry of src/python/orders.rs: which number of _Py_DebugOffsets is where a structure keeps what is read.
   Compiled against the headers of that version, 3.13 or later; see generate/python. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include "internal/pycore_runtime.h"
#include <stddef.h>
#include <stdio.h>

#define NUMBER(name, member) printf("        " name ": %ld,\n", (long)(offsetof(struct _Py_DebugOffsets, member) / 8))

_Static_assert(offsetof(PyCodeObject, co_localsplusnames) - offsetof(PyCodeObject, co_version) == 4, "see debug_offsets.rs");
_Static_assert(sizeof(PyCompactUnicodeObject) - sizeof(PyASCIIObject) == 16, "see debug_offsets.rs");

int main(void) {
    printf("    // %s\n    Order {\n        minor: %d,\n", PY_VERSION, PY_MINOR_VERSION);
    NUMBER("interpreters", runtime_state.interpreters_head);
    NUMBER("interpreter_next", interpreter_state.next);
    NUMBER("interpreter_threads", interpreter_state.threads_head);
    NUMBER("thread_next", thread_state.next);
    NUMBER("thread_frame", thread_state.current_frame);
    NUMBER("thread_ident", thread_state.thread_id);
    NUMBER("thread_native", thread_state.native_thread_id);
    NUMBER("frame_previous", interpreter_frame.previous);
    NUMBER("frame_code", interpreter_frame.executable);
    NUMBER("frame_instruction", interpreter_frame.instr_ptr);
    NUMBER("frame_owner", interpreter_frame.owner);
#if PY_MINOR_VERSION >= 14
    NUMBER("frame_copy", interpreter_frame.tlbc_index);
    NUMBER("code_copies", code_object.co_tlbc);
#else
    printf("        frame_copy: 0,\n        code_copies: 0,\n");
#endif
    NUMBER("code_file", code_object.filename);
    NUMBER("code_name", code_object.qualname);
    NUMBER("code_lines", code_object.linetable);
    NUMBER("code_first_line", code_object.firstlineno);
    NUMBER("code_variables", code_object.localsplusnames);
    NUMBER("code_instructions", code_object.co_code_adaptive);
    NUMBER("object_type", pyobject.ob_type);
    NUMBER("bytes_length", bytes_object.ob_size);
    NUMBER("bytes_data", bytes_object.ob_sval);
    NUMBER("text_state", unicode_object.state);
    NUMBER("text_length", unicode_object.length);
    NUMBER("text_ascii", unicode_object.asciiobject_size);
    printf("    },\n");
    return 0;
}
