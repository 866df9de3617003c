//! Where a V8 describes its compiled code. Its constants do not say all of it: the rest is known by
//! version, and each code that is read shows whether it holds.

use super::Constants;
use swipr_runtimes::lines::Distances;
use swipr_runtimes::v8::compiled::CompiledLayout;

/// How tables of positions are written; `None`: it is not known.
pub fn distances(version: (u32, u32)) -> Option<Distances> {
    match version {
        (10..=12, _) | (13, 0..=6) => Some(Distances::Signed),
        (14, _) => Some(Distances::Shifted),
        _ => None,
    }
}

/// `None`: something is missing.
pub fn layout(constants: &Constants<'_>, distances: Distances) -> Option<CompiledLayout> {
    let of = |name: &str| constants.of::<u64>(name).ok();
    let layout = CompiledLayout { distances, ..common(constants)? };
    let stream = constants.of("type_InstructionStream__INSTRUCTION_STREAM_TYPE");
    let type_header = match &stream {
        Ok(stream) => *stream,
        Err(_) => constants.of("type_Code__CODE_TYPE").ok()?,
    };
    Some(match (stream, of("class_Code__instruction_start__Address")) {
        // From 12 on.
        (Ok(_), Some(start)) => CompiledLayout {
            header: 32,
            type_header,
            start: Some(start),
            deoptimization: 8,
            positions: 16,
            size: of("class_Code__instruction_size__int")?,
            flags: of("class_Code__flags__uint32_t")?,
            ..layout
        },
        // 11.
        (Ok(_), None) => CompiledLayout {
            header: 16,
            type_header,
            start: Some(40),
            deoptimization: of("class_Code__deoptimization_data__FixedArray")?,
            positions: of("class_Code__source_position_table__ByteArray")?,
            size: 56,
            flags: 48,
            ..layout
        },
        // 10.
        (Err(_), _) => CompiledLayout {
            header: of("class_Code__instruction_start__uintptr_t")?,
            type_header,
            start: None,
            deoptimization: 16,
            positions: 24,
            size: of("class_Code__instruction_size__int")?,
            flags: of("class_Code__flags__uint32_t")?,
            ..layout
        },
    })
}

/// What is the same in all versions, or said by the constants.
fn common(constants: &Constants<'_>) -> Option<CompiledLayout> {
    let of = |name: &str| constants.of::<u64>(name).ok();
    let array = |names: &str| constants.of(&format!("type_{names}_TYPE")).unwrap_or(CompiledLayout::NO_TYPE);
    let baseline: u32 = constants.of("CodeKindBaseline").ok()?;
    Some(CompiledLayout {
        kind_mask: constants.of("CodeKindFieldMask").ok()?,
        // Maglev's and TurboFan's.
        kinds: (baseline + 1, baseline + 2),
        types_array: [
            array("FixedArray__FIXED_ARRAY"),
            array("WeakFixedArray__WEAK_FIXED_ARRAY"),
            array("TrustedFixedArray__TRUSTED_FIXED_ARRAY"),
            array("TrustedWeakFixedArray__TRUSTED_WEAK_FIXED_ARRAY"),
            array("ProtectedFixedArray__PROTECTED_FIXED_ARRAY"),
        ],
        types_bytes: [array("ByteArray__BYTE_ARRAY"), array("TrustedByteArray__TRUSTED_BYTE_ARRAY")],
        // Version 10 has the same, and does not say so.
        literals: of("DeoptimizationDataLiteralArrayIndex").unwrap_or(2),
        id: of("DeoptimizationDataOptimizationIdIndex").unwrap_or(5),
        function: of("DeoptimizationDataSharedFunctionInfoIndex")
            .or_else(|| of("DeoptimizationDataWrappedSharedFunctionInfoIndex"))
            .unwrap_or(6),
        wrapped: of("class_SharedFunctionInfoWrapper__shared_info__Tagged_SharedFunctionInfo_"),
        calls: of("DeoptimizationDataInliningPositionsIndex").unwrap_or(7),
        ..CompiledLayout::default()
    })
}
