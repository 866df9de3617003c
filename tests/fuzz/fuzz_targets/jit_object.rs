#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| swipr_properties::check("jit_object", bytes));
