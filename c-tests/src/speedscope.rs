//! speedscope's importer (npm's package `speedscope`): its page loads a file, and exports the
//! profiles that it has made of the file.

use crate::browser::Browser;
use crate::directory::Directory;
use crate::harness::NotRun;
use crate::npm;
use serde_json::Value;

/// A file that is loaded, and shown.
#[derive(Debug)]
pub struct Loaded {
    /// Where it is shown.
    pub browser: Browser,
}

/// A profile in it.
#[derive(Debug)]
pub struct Profile {
    /// As the page shows it.
    pub name: String,
    /// Every stack, from the root on.
    pub stacks: Vec<Vec<String>>,
}

impl Loaded {
    /// Loads what a file of that name has in it.
    pub fn load(name: &str, text: &str) -> Result<Loaded, NotRun> {
        let installed = npm::installed("speedscope")?;
        let mut browser =
            Browser::start().ok_or_else(|| "no chromium (Debian package chromium)".to_owned())?;
        // As its own command hands a file over: a script that calls it with the bytes.
        let folder = Directory::new();
        let script = folder.path().join("profile.js");
        let [name, text] = [name, text].map(|text| Value::from(text).to_string());
        let call =
            format!("speedscope.loadFileFromBase64({name}, btoa(unescape(encodeURIComponent({text}))))");
        std::fs::write(&script, call).expect("the file can be written");
        let page = installed.join("dist/release/index.html");
        browser.open(&format!("file://{}#localProfilePath={}", page.display(), script.display()));
        browser.until("document.body.innerText.includes('Export')");
        Ok(Loaded { browser })
    }

    /// The profiles that the page has made of the file, as it would save them.
    pub fn profiles(&mut self) -> Vec<Profile> {
        self.browser.value(
            "window.saved = new Promise(done => { URL.createObjectURL = blob => { blob.text().then(done); return '#'; }; }), \
             [...document.querySelectorAll('div')].filter(e => e.innerText.endsWith('Export')).pop().click()",
        );
        let saved: Value = serde_json::from_str(&self.browser.text("window.saved")).expect("JSON");
        let names: Vec<&str> =
            list(&saved["shared"]["frames"]).iter().map(|frame| text(&frame["name"])).collect();
        let profile = |profile: &Value| Profile {
            name: text(&profile["name"]).to_owned(),
            stacks: stacks(profile, &names),
        };
        list(&saved["profiles"]).iter().map(profile).collect()
    }
}

/// The stacks of frames that open and close: each is complete where one closes behind one that
/// opens.
fn stacks(profile: &Value, names: &[&str]) -> Vec<Vec<String>> {
    let (mut open, mut all, mut has_opened): (Vec<String>, _, _) = (vec![], vec![], false);
    for event in list(&profile["events"]) {
        let is_opening = event["type"] == "O";
        if is_opening {
            let frame = event["frame"].as_u64().expect("a frame's number") as usize;
            open.push(names[frame].to_owned());
        } else {
            if has_opened {
                all.push(open.clone());
            }
            open.pop();
        }
        has_opened = is_opening;
    }
    all
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}
