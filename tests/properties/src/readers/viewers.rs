//! What is in the files that viewers draw: stacks of threads and their weights, read strictly.

use serde_json::Value;

/// A stack, outermost frame first, and what it weighs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weighted {
    /// The thread's name, as the file has it.
    pub thread: String,
    /// Names of frames.
    pub stack: Vec<String>,
    /// Nanoseconds.
    pub ns: u64,
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

fn index(value: &Value) -> usize {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}")) as usize
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// Milliseconds with all their decimals.
fn ns_of_ms(value: &Value) -> u64 {
    (value.as_f64().unwrap_or_else(|| panic!("no number: {value}")) * 1e6).round() as u64
}

/// Firefox Profiler's processed profile: every column as long as its table says, every index inside
/// of its table.
pub fn firefox(json: &str) -> Vec<Weighted> {
    let profile: Value = serde_json::from_str(json).unwrap();
    assert_eq!(profile["meta"]["preprocessedProfileVersion"], 55);
    let libraries = list(&profile["libs"]).len();
    let mut all = Vec::new();
    for thread in list(&profile["threads"]) {
        let table = |name: &str| {
            let table = &thread[name];
            let length = index(&table["length"]);
            for (column, values) in table.as_object().unwrap() {
                let is_column = values.is_array();
                assert!(!is_column || list(values).len() == length, "{name}.{column}");
            }
            table
        };
        let strings = list(&thread["stringArray"]);
        let (stacks, frames, functions) = (table("stackTable"), table("frameTable"), table("funcTable"));
        let (resources, symbols, samples) =
            (table("resourceTable"), table("nativeSymbols"), table("samples"));
        table("markers");
        assert!(list(&resources["lib"]).iter().all(|library| index(library) < libraries));
        assert!(list(&symbols["name"]).iter().all(|name| index(name) < strings.len()));
        let stack_of = |sample: usize| {
            let mut names = Vec::new();
            let mut at = &samples["stack"][sample];
            while !at.is_null() {
                let frame = index(&stacks["frame"][index(at)]);
                let function = index(&frames["func"][frame]);
                names.push(text(&strings[index(&functions["name"][function])]));
                let before = &stacks["prefix"][index(at)];
                assert!(before.is_null() || index(before) < index(at), "a prefix comes first");
                at = before;
            }
            names.reverse();
            names
        };
        for sample in 0..index(&samples["length"]) {
            let ns = ns_of_ms(&samples["weight"][sample]);
            all.push(Weighted { thread: text(&thread["name"]), stack: stack_of(sample), ns });
        }
    }
    all
}

/// speedscope's JSON.
pub fn speedscope(json: &str) -> Vec<Weighted> {
    let file: Value = serde_json::from_str(json).unwrap();
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames = list(&file["shared"]["frames"]);
    let mut all = Vec::new();
    for profile in list(&file["profiles"]) {
        assert_eq!((&profile["type"], &profile["unit"]), (&"sampled".into(), &"nanoseconds".into()));
        let (samples, weights) = (list(&profile["samples"]), list(&profile["weights"]));
        assert_eq!(samples.len(), weights.len());
        for (sample, weight) in samples.iter().zip(weights) {
            let stack = list(sample).iter().map(|frame| text(&frames[index(frame)]["name"])).collect();
            let ns = weight.as_u64().unwrap();
            all.push(Weighted { thread: text(&profile["name"]), stack, ns });
        }
    }
    all
}

/// The data of an HTML flame graph. The page has its own two scripts and no other.
pub fn html(page: &str) -> Vec<Weighted> {
    let data = html_data(page);
    let interval_ns = data["info"]["interval_ns"].as_u64().unwrap();
    let stride = index(&data["info"]["stride"]);
    let names = list(&data["names"]);
    let (frames, nodes) = (list(&data["frames"]), list(&data["nodes"]));
    let threads = list(&data["threads"]);
    let states = list(&data["states"]).len() / 2;
    list(&data["spans"])
        .chunks(stride)
        .map(|span| {
            assert!(index(&span[3]) < states);
            let mut stack = Vec::new();
            let mut at = index(&span[2]);
            while at > 0 {
                let parent = index(&nodes[2 * (at - 1)]);
                assert!(parent < at, "a parent comes first");
                let frame = index(&nodes[2 * (at - 1) + 1]);
                stack.push(text(&names[index(&frames[5 * frame])]));
                at = parent;
            }
            stack.reverse();
            let thread = text(&threads[2 * index(&span[1]) + 1]);
            let ns =
                span.get(5).map_or_else(|| index(&span[4]) as u64 * interval_ns, |ns| ns.as_u64().unwrap());
            Weighted { thread, stack, ns }
        })
        .collect()
}

/// The JSON in such a page.
pub fn html_data(page: &str) -> Value {
    let lower = page.to_lowercase();
    assert_eq!((lower.matches("<script").count(), lower.matches("</script").count()), (3, 3));
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    assert!(!data.contains('<'));
    serde_json::from_str(data).unwrap()
}

/// Boxes of an SVG flame graph that is well-formed: the whole weight, and the names and weights of
/// all boxes.
pub fn svg(xml: &str) -> (u64, Vec<(String, u64)>) {
    let document = roxmltree::Document::parse(xml).unwrap();
    let root = document.root_element();
    let elements = || document.descendants().filter(roxmltree::Node::is_element);
    assert_eq!(elements().filter(|node| node.tag_name().name() == "script").count(), 1);
    for node in elements() {
        assert!(node.attributes().all(|attribute| !attribute.name().starts_with("on")), "{node:?}");
        assert!(
            ["svg", "title", "desc", "style", "text", "g", "rect", "script"]
                .contains(&node.tag_name().name())
        );
    }
    let boxes = elements().filter(|node| node.has_attribute("data-w")).map(|node| {
        let label =
            node.children().find(|child| child.tag_name().name() == "text").and_then(|text| text.text());
        let name = node.attribute("data-n").or(label).unwrap_or_default();
        (name.to_owned(), node.attribute("data-w").unwrap().parse().unwrap())
    });
    (root.attribute("data-total").unwrap().parse().unwrap(), boxes.collect())
}
