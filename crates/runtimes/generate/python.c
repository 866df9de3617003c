/* Prints a row of src/python/rows.rs: where this version of CPython keeps what is read.
   Compiled against the installed headers of that version, 3.6 to 3.12; see generate/python. */
#define Py_BUILD_CORE 1
#include <Python.h>
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_frame.h"
#else
#include <frameobject.h>
#endif
#if PY_VERSION_HEX >= 0x03090000
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#elif PY_VERSION_HEX >= 0x03080000
#include "internal/pycore_pystate.h"
#elif PY_VERSION_HEX >= 0x03070000
#include "internal/pystate.h"
#endif
#include <stddef.h>
#include <stdio.h>

#define FIELD(name, value) printf("        " name ": %ld,\n", (long)(value))

int main(void) {
    printf("    // %s\n    Row {\n        minor: %d,\n", PY_VERSION, PY_MINOR_VERSION);
#if PY_VERSION_HEX >= 0x03070000
    FIELD("interpreters", offsetof(_PyRuntimeState, interpreters.head));
#else
    // A variable of its own.
    FIELD("interpreters", 0);
#endif
    FIELD("interpreter_next", offsetof(PyInterpreterState, next));
#if PY_VERSION_HEX >= 0x030b0000
    FIELD("interpreter_threads", offsetof(PyInterpreterState, threads.head));
#else
    FIELD("interpreter_threads", offsetof(PyInterpreterState, tstate_head));
#endif
    FIELD("thread_next", offsetof(PyThreadState, next));
    FIELD("thread_ident", offsetof(PyThreadState, thread_id));
#if PY_VERSION_HEX >= 0x030b0000
    printf("        thread_native: Some(%ld),\n", (long)offsetof(PyThreadState, native_thread_id));
    FIELD("thread_frame", offsetof(PyThreadState, cframe));
    printf("        c_frame: Some(%ld),\n", (long)offsetof(_PyCFrame, current_frame));
    FIELD("frame_code", offsetof(_PyInterpreterFrame, f_code));
    FIELD("frame_previous", offsetof(_PyInterpreterFrame, previous));
    printf("        frame_instruction: Instruction::Pointer { at: %ld, code: %ld },\n",
           (long)offsetof(_PyInterpreterFrame, prev_instr), (long)offsetof(PyCodeObject, co_code_adaptive));
#else
    printf("        thread_native: None,\n");
    FIELD("thread_frame", offsetof(PyThreadState, frame));
    printf("        c_frame: None,\n");
    FIELD("frame_code", offsetof(PyFrameObject, f_code));
    FIELD("frame_previous", offsetof(PyFrameObject, f_back));
    printf("        frame_instruction: Instruction::Number { at: %ld, bytes: %d },\n",
           (long)offsetof(PyFrameObject, f_lasti), PY_VERSION_HEX >= 0x030a0000 ? 2 : 1);
#endif
#if PY_VERSION_HEX >= 0x030c0000
    printf("        frame_entry: Entry::Shim(%ld),\n", (long)offsetof(_PyInterpreterFrame, owner));
#elif PY_VERSION_HEX >= 0x030b0000
    printf("        frame_entry: Entry::Flag(%ld),\n", (long)offsetof(_PyInterpreterFrame, is_entry));
#else
    printf("        frame_entry: Entry::Each,\n");
#endif
#if PY_VERSION_HEX >= 0x030b0000
    printf("        line_table: LineTable::Locations,\n");
    FIELD("code_lines", offsetof(PyCodeObject, co_linetable));
    FIELD("code_name", offsetof(PyCodeObject, co_qualname));
#elif PY_VERSION_HEX >= 0x030a0000
    printf("        line_table: LineTable::Ranges,\n");
    FIELD("code_lines", offsetof(PyCodeObject, co_linetable));
    FIELD("code_name", offsetof(PyCodeObject, co_name));
#else
    printf("        line_table: LineTable::Differences,\n");
    FIELD("code_lines", offsetof(PyCodeObject, co_lnotab));
    FIELD("code_name", offsetof(PyCodeObject, co_name));
#endif
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
    FIELD("text_kind_bit", 2);
    FIELD("text_ascii", sizeof(PyASCIIObject));
    FIELD("text_compact", sizeof(PyCompactUnicodeObject));
    FIELD("bytes_length", offsetof(PyVarObject, ob_size));
    FIELD("bytes_data", offsetof(PyBytesObject, ob_sval));
    printf("    },\n");
    return 0;
}
