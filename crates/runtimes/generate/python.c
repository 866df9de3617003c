/* Prints a row of src/python/rows.rs: where this version of CPython keeps what is read.
   Compiled against the public headers of that version, 3.11 or 3.12; see generate/python. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include "internal/pycore_frame.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#include <stddef.h>
#include <stdio.h>

#define FIELD(name, value) printf("        " name ": %ld,\n", (long)(value))

int main(void) {
    printf("    // %s\n    Row {\n        minor: %d,\n", PY_VERSION, PY_MINOR_VERSION);
    FIELD("interpreters", offsetof(_PyRuntimeState, interpreters.head));
    FIELD("interpreter_next", offsetof(PyInterpreterState, next));
    FIELD("interpreter_threads", offsetof(PyInterpreterState, threads.head));
    FIELD("thread_next", offsetof(PyThreadState, next));
    FIELD("thread_ident", offsetof(PyThreadState, thread_id));
    FIELD("thread_native", offsetof(PyThreadState, native_thread_id));
    FIELD("thread_frame", offsetof(PyThreadState, cframe));
    printf("        c_frame: Some(%ld),\n", (long)offsetof(_PyCFrame, current_frame));
    FIELD("frame_code", offsetof(_PyInterpreterFrame, f_code));
    FIELD("frame_previous", offsetof(_PyInterpreterFrame, previous));
    FIELD("frame_instruction", offsetof(_PyInterpreterFrame, prev_instr));
    FIELD("frame_owner", offsetof(_PyInterpreterFrame, owner));
#if PY_VERSION_HEX < 0x030c0000
    FIELD("frame_is_entry", offsetof(_PyInterpreterFrame, is_entry));
#else
    FIELD("frame_is_entry", 0);
#endif
    FIELD("code_instructions", offsetof(PyCodeObject, co_code_adaptive));
    FIELD("code_lines", offsetof(PyCodeObject, co_linetable));
    FIELD("code_name", offsetof(PyCodeObject, co_qualname));
    FIELD("code_file", offsetof(PyCodeObject, co_filename));
#if PY_VERSION_HEX >= 0x030c0000
    FIELD("code_version", offsetof(PyCodeObject, co_version));
#else
    FIELD("code_version", 0);
#endif
    FIELD("code_first_line", offsetof(PyCodeObject, co_firstlineno));
    FIELD("object_type", offsetof(PyObject, ob_type));
    FIELD("text_length", offsetof(PyASCIIObject, length));
    FIELD("text_state", offsetof(PyASCIIObject, state));
    FIELD("text_ascii", sizeof(PyASCIIObject));
    FIELD("text_compact", sizeof(PyCompactUnicodeObject));
    FIELD("bytes_length", offsetof(PyVarObject, ob_size));
    FIELD("bytes_data", offsetof(PyBytesObject, ob_sval));
    printf("    },\n");
    return 0;
}
