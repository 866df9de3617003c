use super::*;

#[test]
fn a_location_has_the_type_of_the_frame_that_collectors_know_for_its_language() {
    let types = ["cpython", "perl", "php", "ruby", "v8js"];
    let languages = Language::ALL.map(FrameKind::Interpreted);
    let kinds = languages.into_iter().zip(types).chain([(FrameKind::Native, "native")]);
    for (kind, expected) in kinds {
        let mut tables = Tables::new();
        let place = tables.location(&Frame { address: 1, kind, module: None, functions: Arc::default() });
        let key = ("profile.frame.type".to_owned(), expected.to_owned());
        let attribute = tables.attributes.find(&key).expect(expected);
        let location = tables.locations.entries.swap_remove(place as usize).into_bytes();
        // Address 1, and the list of attributes.
        assert_eq!(location, [0x10, 1, 0x22, 1, attribute as u8], "{expected}");
    }
}
