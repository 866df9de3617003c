//! A flame graph as one SVG file, root at the top: a picture by itself; a browser zooms and
//! searches in it. It loads nothing from elsewhere.
//!
//! Threads are the first row, those of one name together. Boxes too small to see are left out. A
//! diff colours what has grown red and what has shrunk blue. Not here: where boxes are
//! (`picture.rs`).

use std::fmt::Write;

use crate::aggregate::Sums;
use crate::category::Class;
use crate::display::{DisplayFrame, DisplayTree};
use crate::intern::ThreadNumbers;
use crate::jit_tier::{Tier, tier};
use crate::model::{Header, Measure, Mode, Sample, State, Summary};
use crate::picture::{Baseline, Box, Picture};
use crate::stats::{stats_line, why_empty};
use crate::template::escaped;
use crate::{Decimal, Format, Options, Weight, names};

const WIDTH: u32 = 1200;
const MARGIN: f64 = 10.0;
const ROW: usize = 18;
const TOP: usize = 54;
/// Narrower boxes are left out.
const LEAST_WIDTH: f64 = 0.3;
const STYLE: &str = "svg{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;background:#fbfaf8}\
text{fill:#2a1d12;pointer-events:none}.head{font-size:16px;font-weight:600}.soft{fill:#726c66}.link{cursor:pointer;pointer-events:auto}\
g[data-k]{cursor:pointer}g:hover>rect{stroke:#1d1b19}.hit>rect{fill:#b5179e}.hit>text{fill:#fff}\
@media(prefers-color-scheme:dark){svg{background:#141312}.head,.soft,.link{fill:#f1ece6}#frames{filter:brightness(.86)}}";

pub(crate) fn make(options: &Options) -> std::boxed::Box<dyn Format> {
    std::boxed::Box::new(Svg {
        options: options.clone(),
        header: None,
        stacks: DisplayTree::new(options),
        threads: ThreadNumbers::new(),
        sums: Sums::default(),
    })
}

struct Svg {
    options: Options,
    header: Option<Header>,
    stacks: DisplayTree,
    threads: ThreadNumbers,
    /// By thread and node.
    sums: Sums,
}

impl Format for Svg {
    fn begin(&mut self, header: &Header, _out: &mut Vec<u8>) {
        self.stacks.begin(header);
        self.header = Some(header.clone());
    }

    fn sample(&mut self, sample: &Sample<'_>, _out: &mut Vec<u8>) {
        let thread = if self.options.merge_threads { 0 } else { self.threads.intern(sample.thread).id };
        let node = self.stacks.node(sample);
        self.sums.entry((thread, State::Running, node as usize)).or_default().add(sample);
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) {
        let Some(header) = self.header.take() else {
            return;
        };
        let threads = std::mem::replace(&mut self.threads, ThreadNumbers::new()).into_values();
        let mut picture = Picture::new();
        for ((thread, _, node), sum) in std::mem::take(&mut self.sums) {
            let thread = threads
                .get(thread)
                .map(|thread| DisplayFrame::note(&names::thread(&thread.name), Class::Note));
            let mut frames: Vec<&DisplayFrame> = self.stacks.tree.stack(node as u32).collect();
            frames.extend(&thread);
            picture.add(frames.into_iter().rev(), sum.ns, Baseline::Now);
        }
        let mode = match header.mode {
            Mode::Wall => "wall clock",
            Mode::Cpu => "CPU time",
        };
        let title = self.options.title.clone().unwrap_or_else(|| header.title());
        let about = match self.stacks.tree.len() {
            1 => format!("No samples: {}", why_empty(summary)),
            _ => match &header.measure {
                Some(measure) => names::measure(measure),
                None => {
                    let seconds = Decimal::rounded(summary.duration_ns as f64 / 1e9, 1);
                    format!("{mode}, {seconds} s, {} samples", summary.samples)
                }
            },
        };
        let stats = stats_line(summary);
        let texts = Texts {
            title: &title,
            about: &about,
            stats: &stats,
            unit: Weight::Nanoseconds,
            measure: header.measure.as_ref(),
        };
        out.extend_from_slice(drawing(&picture, &texts, Palette::Kinds).as_bytes());
    }
}

/// What stands around the boxes.
pub(crate) struct Texts<'a> {
    pub(crate) title: &'a str,
    pub(crate) about: &'a str,
    pub(crate) stats: &'a str,
    /// What weights count.
    pub(crate) unit: Weight,
    /// Weights that are no time.
    pub(crate) measure: Option<&'a Measure>,
}

/// What colours mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Palette {
    /// Kinds of code.
    Kinds,
    /// What has grown and what has shrunk.
    Change,
}

/// The whole file.
pub(crate) fn drawing(picture: &Picture, texts: &Texts<'_>, tint: Palette) -> String {
    let whole = picture.boxes(0).first().map_or(0, |all| all.weight).max(1);
    let scale = (f64::from(WIDTH) - 2.0 * MARGIN) / whole as f64;
    let boxes = picture.boxes((LEAST_WIDTH / scale) as u64);
    let rows = boxes.iter().map(|each| each.depth).max().unwrap_or(0) + 1;
    let height = TOP + rows * ROW + 28;
    let [title, about, stats] =
        [texts.title, texts.about, texts.stats].map(|text| escaped(&names::printable(text)));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"100%\" preserveAspectRatio=\"xMidYMin\" data-total=\"{}\">\n\
         <title>{title}</title>\n<desc>swipr: {stats}</desc>\n<style>{STYLE}</style>\n\
         <text class=\"head\" x=\"10\" y=\"22\">{title}</text>\n<text class=\"soft\" x=\"10\" y=\"40\">{about}</text>\n\
         <text class=\"link\" id=\"all\" x=\"1130\" y=\"22\" text-anchor=\"end\">Show all</text>\n\
         <text class=\"link\" id=\"find\" x=\"1190\" y=\"22\" text-anchor=\"end\">Search</text>\n\
         <text class=\"soft\" id=\"note\" x=\"1190\" y=\"40\" text-anchor=\"end\"></text>\n<g id=\"frames\">\n",
        boxes.first().map_or(0, |all| all.weight)
    );
    let earlier = boxes.first().map_or(0, |all| all.earlier);
    for each in &boxes {
        one_box(&mut out, picture, each, (scale, texts), Baselines { now: whole, earlier }, tint);
    }
    out.push_str("</g>\n<script><![CDATA[");
    out.push_str(include_str!(concat!(env!("OUT_DIR"), "/svg.js")));
    out.push_str("]]></script>\n</svg>\n");
    out
}

#[derive(Clone, Copy)]
struct Baselines {
    now: u64,
    earlier: u64,
}

/// `scale`: the width of one of these.
fn one_box(
    out: &mut String,
    picture: &Picture,
    each: &Box,
    (scale, texts): (f64, &Texts<'_>),
    whole: Baselines,
    tint: Palette,
) {
    let frame = each.frame.and_then(|frame| picture.shown(frame));
    let name = frame.map_or("all", |frame| &frame.name);
    let (x, width) = (MARGIN + each.before as f64 * scale, each.weight as f64 * scale);
    let y = TOP + each.depth * ROW;
    let percent = |part, whole| Decimal::rounded(100.0 * part as f64 / whole as f64, 2);
    let module = frame.map(|frame| &*frame.module).filter(|module| !module.is_empty());
    let mut module = module.map_or_else(String::new, |module| format!(", {module}"));
    if let Some(tier) = frame.filter(|frame| frame.class == Class::Jit).and_then(|frame| tier(&frame.name)) {
        module = format!("{module}, {}", tier.word());
    }
    let fill = match tint {
        Palette::Kinds => kind_color(frame),
        Palette::Change => change_color(each, whole),
    };
    let change = match (tint, whole.earlier) {
        (Palette::Change, 1..) => format!(", before {}%", percent(each.earlier, whole.earlier)),
        _ => String::new(),
    };
    let time = |ns| format!("{} ms", Decimal::rounded(ns as f64 / 1e6, 3));
    let amount = match texts.unit {
        Weight::Nanoseconds => names::amount(texts.measure, each.weight, time),
        Weight::Samples => format!("{} samples", each.weight),
    };
    let hover = escaped(&format!("{name} ({}%, {amount}{change}){module}", percent(each.weight, whole.now)));
    let room = ((width - 6.0) / 7.0) as usize;
    let (text, whole_name) = match name.chars().count() {
        _ if room < 3 => (String::new(), Some(name)),
        count if count > room => (name.chars().take(room - 1).chain(['…']).collect(), Some(name)),
        _ => (name.to_owned(), None),
    };
    let whole_name = whole_name.map_or_else(String::new, |name| format!(" data-n=\"{}\"", escaped(name)));
    let class = frame.map_or(Class::Note, |frame| frame.class) as u8;
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "<g data-k=\"{class}\" data-w=\"{}\"{whole_name}><title>{hover}</title><rect x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"1.5\" fill=\"{fill}\"/><text x=\"{}\" y=\"{}\">{}</text></g>",
        each.weight,
        Decimal::rounded(x, 2),
        Decimal::rounded(width, 2),
        ROW - 1,
        Decimal::rounded(x + 4.0, 2),
        y + 13,
        escaped(&text)
    );
}

fn kind_color(frame: Option<&DisplayFrame>) -> String {
    let Some(frame) = frame else { return "#e4ded7".to_owned() };
    let file = frame.module.rsplit('/').next().unwrap_or("");
    let hue = 14.0 + spread(file) * 34.0;
    let (hue, saturation, light) = match frame.class {
        Class::Native => (hue, 88, 67),
        Class::Inlined => (hue + 4.0, 72, 79),
        Class::Jit => match tier(&frame.name) {
            Some(Tier::Interpreter) => (92.0, 38, 74),
            Some(Tier::Baseline) => (112.0, 42, 68),
            Some(Tier::Stub) => (170.0, 18, 74),
            Some(Tier::Middle) | None => (146.0, 45, 62),
            Some(Tier::Optimised) => (158.0, 58, 52),
        },
        Class::Interpreter => (268.0, 58, 74),
        Class::Waiting => (208.0, 26, 74),
        Class::Note => (30.0, 5, 80),
        Class::Python => (232.0, 62, 76),
        Class::Perl => (186.0, 48, 70),
        Class::Php => (318.0, 44, 76),
        Class::Ruby => (352.0, 62, 76),
        Class::JavaScript => (66.0, 62, 62),
        Class::Java => (104.0, 48, 66),
    };
    let light = f64::from(light) + (spread(&frame.name) - 0.5) * 8.0;
    hsl(hue, f64::from(saturation), light)
}

fn change_color(each: &Box, whole: Baselines) -> String {
    let now = each.weight as f64 / whole.now as f64;
    let before = if whole.earlier > 0 { each.earlier as f64 / whole.earlier as f64 } else { 0.0 };
    let change = (now - before) / now.max(before).max(f64::MIN_POSITIVE);
    let amount = (change.abs() * 1.2).min(1.0);
    match amount {
        ..0.04 => "#e9e5e0".to_owned(),
        _ => hsl(if change > 0.0 { 8.0 } else { 214.0 }, 40.0 + 45.0 * amount, 90.0 - 28.0 * amount),
    }
}

fn hsl(hue: f64, saturation: f64, light: f64) -> String {
    let [hue, saturation, light] = [hue, saturation, light].map(|value| Decimal::rounded(value, 0));
    format!("hsl({hue},{saturation}%,{light}%)")
}

/// A number from 0 to 1 that is always the same for a text.
fn spread(text: &str) -> f64 {
    let sum = text.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    f64::from(sum % 997) / 997.0
}
