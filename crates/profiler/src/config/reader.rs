//! Reads variables, and says what is wrong with one.

use super::variables::RUNTIMES;
use super::{ConfigError, SOCKET_OPTION, WaitingFor, digits, place};
use crate::interpreters::Wanted;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use swipr_os::log::Log;
use swipr_server::listen::Place;

pub(super) struct VariableReader<'a> {
    pub(super) lookup: &'a dyn Fn(&str) -> Option<OsString>,
}

impl VariableReader<'_> {
    pub(super) fn value(&self, variable: &str) -> Option<OsString> {
        (self.lookup)(variable).filter(|value| !value.is_empty())
    }

    pub(super) fn text(
        &self,
        variable: &'static str,
        example: &'static str,
    ) -> Result<Option<String>, ConfigError> {
        let Some(value) = self.value(variable) else {
            return Ok(None);
        };
        match value.into_string() {
            Ok(text) => Ok(Some(text)),
            Err(value) => Err(ConfigError {
                variable,
                value: value.to_string_lossy().into_owned(),
                reason: "it is not UTF-8".to_owned(),
                example,
            }),
        }
    }

    pub(super) fn check<T>(
        &self,
        variable: &'static str,
        value: &str,
        parsed: Result<T, String>,
        example: &'static str,
    ) -> Result<T, ConfigError> {
        parsed.map_err(|reason| ConfigError { variable, value: value.to_owned(), reason, example })
    }

    /// The index of the value in `values`.
    pub(super) fn choice(
        &self,
        variable: &'static str,
        values: &[&'static str],
    ) -> Result<Option<usize>, ConfigError> {
        let example = if values.contains(&"1") { "1" } else { values.first().copied().unwrap_or_default() };
        let Some(text) = self.text(variable, example)? else {
            return Ok(None);
        };
        let index = values.iter().position(|value| *value == text);
        let index = index.ok_or_else(|| format!("it must be one of {}", values.join(", ")));
        self.check(variable, &text, index, example).map(Some)
    }

    /// What `options->socket` of `swipr_start` says.
    pub(super) fn given_place(&self, socket: &str, exposure: place::Exposure) -> Result<Place, ConfigError> {
        let place = match socket.contains("://") {
            true => place::from_url(socket, place::Braces::AreText, exposure),
            false => place::from_path(socket.as_bytes()),
        };
        self.check(SOCKET_OPTION, socket, place, place::SOCKET_EXAMPLE)
    }

    pub(super) fn main_place(&self, exposure: place::Exposure) -> Result<Place, ConfigError> {
        if let Some(value) = self.value("SWIPR_SOCKET") {
            let place = place::from_path(value.as_bytes());
            let shown = value.to_string_lossy();
            return self.check("SWIPR_SOCKET", &shown, place, place::SOCKET_EXAMPLE);
        }
        let literal = ["SWIPR_SAMPLING_SERVER_URL", "PROFILE_RECORDER_SERVER_URL"];
        for variable in literal {
            if let Some(url) = self.text(variable, place::URL_EXAMPLE)? {
                let place = place::from_url(&url, place::Braces::AreText, exposure);
                return self.check(variable, &url, place, place::URL_EXAMPLE);
            }
        }
        let patterns = ["SWIPR_SAMPLING_SERVER_URL_PATTERN", "PROFILE_RECORDER_SERVER_URL_PATTERN"];
        for variable in patterns {
            if let Some(url) = self.text(variable, place::URL_PATTERN_EXAMPLE)? {
                let place = place::from_url(&url, place::Braces::ArePlaceholders, exposure);
                return self.check(variable, &url, place, place::URL_PATTERN_EXAMPLE);
            }
        }
        Ok(Place::Default)
    }

    pub(super) fn uids(&self) -> Result<Vec<u32>, ConfigError> {
        let Some(text) = self.text("SWIPR_ALLOW_UID", "1000,1001")? else {
            return Ok(Vec::new());
        };
        let uids = text.split(',').map(|uid| {
            let uid = uid.trim();
            let number = digits(uid).and_then(|uid| u32::try_from(uid).ok());
            number.ok_or_else(|| format!("\"{uid}\" is not a user id"))
        });
        self.check("SWIPR_ALLOW_UID", &text, uids.collect(), "1000,1001")
    }

    pub(super) fn waiting_recorder(&self) -> Result<Option<WaitingFor>, ConfigError> {
        let Some(text) = self.text("SWIPR_RECORDER", "all:1234")? else {
            return Ok(None);
        };
        self.check("SWIPR_RECORDER", &text, WaitingFor::parse(&text), "all:1234").map(Some)
    }

    pub(super) fn log(&self) -> Result<Log, ConfigError> {
        Ok(match self.choice("SWIPR_LOG", &["0", "1", "stderr"])? {
            Some(1 | 2) => Log::Stderr,
            _ => Log::Off,
        })
    }

    pub(super) fn interpreters(&self) -> Result<Wanted, ConfigError> {
        let Some(text) = self.text(RUNTIMES, "python,perl")? else {
            return Ok(Wanted::default());
        };
        self.check(RUNTIMES, &text, Wanted::parse(&text), "python,perl")
    }

    pub(super) fn patterns(&self, variable: &'static str) -> Result<Vec<String>, ConfigError> {
        let text = self.text(variable, "nginx,/opt/*")?.unwrap_or_default();
        let patterns = text.split(',').map(str::trim).filter(|pattern| !pattern.is_empty());
        Ok(patterns.map(str::to_owned).collect())
    }

    pub(super) fn number(
        &self,
        variable: &'static str,
        range: RangeInclusive<u64>,
        default: &'static str,
    ) -> Result<u64, ConfigError> {
        let text = self.text(variable, default)?.unwrap_or_else(|| default.to_owned());
        let number = digits(&text).filter(|number| range.contains(number));
        let number = number.ok_or_else(|| format!("it must be from {} to {}", range.start(), range.end()));
        self.check(variable, &text, number, default)
    }
}
