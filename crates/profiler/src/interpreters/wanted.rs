//! Which interpreters' frames are read.

use swipr_formats::model::Language;

/// A set of languages; all of them by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted(u8);

/// Other names of languages: what runs them.
const OTHER_NAMES: [(&str, Language); 3] =
    [("cpython", Language::Python), ("node", Language::JavaScript), ("v8", Language::JavaScript)];

impl Default for Wanted {
    fn default() -> Wanted {
        Language::ALL.into_iter().fold(Wanted::OFF, Wanted::with)
    }
}

impl Wanted {
    /// No language.
    pub const OFF: Wanted = Wanted(0);

    /// From the variable's value: `all`, `off`, or languages that are separated by commas.
    pub fn parse(text: &str) -> Result<Wanted, String> {
        match text {
            "all" => Ok(Wanted::default()),
            "off" => Ok(Wanted::OFF),
            list => list.split(',').try_fold(Wanted::OFF, |wanted, name| {
                language(name.trim()).map(|language| wanted.with(language)).ok_or_else(|| {
                    let known = Language::ALL.map(Language::word).join(", ");
                    format!("it must be all, off, or languages separated by commas, of {known}")
                })
            }),
        }
    }

    /// Whether functions of that language are read.
    pub fn has(self, language: Language) -> bool {
        self.0 & 1 << language as u8 != 0
    }

    fn with(self, language: Language) -> Wanted {
        Wanted(self.0 | 1 << language as u8)
    }
}

fn language(name: &str) -> Option<Language> {
    let other = OTHER_NAMES.into_iter().find(|(other, _)| *other == name);
    Language::from_word(name).or(other.map(|(_, language)| language))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Language> {
        let wanted = Wanted::parse(text).unwrap();
        Language::ALL.into_iter().filter(|language| wanted.has(*language)).collect()
    }

    #[test]
    fn languages_are_a_list_by_their_names_or_by_what_runs_them() {
        assert_eq!(of("off"), []);
        assert_eq!(of("all"), Language::ALL);
        assert_eq!(of("perl,python,php,ruby,javascript,java"), Language::ALL);
        assert_eq!(of("ruby, python"), [Language::Python, Language::Ruby]);
        assert_eq!(of("node,v8"), [Language::JavaScript]);
        assert_eq!(of("cpython"), [Language::Python]);
    }

    #[test]
    fn a_name_that_is_no_language_is_an_error() {
        for text in ["cobol", "python,cobol", "python,", ",", "python perl", "off,python", "all,perl", "Perl"]
        {
            let error = Wanted::parse(text).unwrap_err();
            assert!(error.ends_with("of python, perl, php, ruby, javascript, java"), "{text}: {error}");
        }
    }
}
