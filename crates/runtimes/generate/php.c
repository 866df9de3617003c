/* Prints a row of src/php/rows.rs: where this version of PHP keeps what is read.
   Compiled against the public headers of that version; see generate/php. */
#include "php.h"
#include "zend_globals.h"
#include "zend_modules.h"
#include <stddef.h>
#include <stdio.h>

#define FIELD(name, value) printf("        " name ": %ld,\n", (long)(value))

int main(void) {
    printf("    // %s\n    PhpRow {\n        api: %d,\n        major: %d,\n        minor: %d,\n", PHP_VERSION, ZEND_MODULE_API_NO,
           PHP_MAJOR_VERSION, PHP_MINOR_VERSION);
    FIELD("current_frame", offsetof(zend_executor_globals, current_execute_data));
    FIELD("frame_op", offsetof(zend_execute_data, opline));
    FIELD("frame_result", offsetof(zend_execute_data, return_value));
    FIELD("frame_function", offsetof(zend_execute_data, func));
    FIELD("frame_call", offsetof(zend_execute_data, This.u1.type_info));
    FIELD("frame_previous", offsetof(zend_execute_data, prev_execute_data));
    FIELD("call_is_entry", ZEND_CALL_TOP);
    FIELD("call_is_generator", ZEND_CALL_GENERATOR);
    FIELD("function_type", offsetof(zend_function, type));
    FIELD("function_name", offsetof(zend_function, common.function_name));
    FIELD("function_class", offsetof(zend_function, common.scope));
    FIELD("function_file", offsetof(zend_function, op_array.filename));
    FIELD("function_line", offsetof(zend_function, op_array.line_start));
    FIELD("function_ops", offsetof(zend_function, op_array.opcodes));
    FIELD("function_op_count", offsetof(zend_function, op_array.last));
    FIELD("class_name", offsetof(zend_class_entry, name));
    FIELD("op_line", offsetof(zend_op, lineno));
    FIELD("op_bytes", sizeof(zend_op));
    FIELD("string_length", offsetof(zend_string, len));
    FIELD("string_text", offsetof(zend_string, val));
    FIELD("table_elements", offsetof(HashTable, arData));
    FIELD("module_api", offsetof(zend_module_entry, zend_api));
    FIELD("module_is_thread_safe", offsetof(zend_module_entry, zts));
    printf("    },\n");
    return 0;
}
