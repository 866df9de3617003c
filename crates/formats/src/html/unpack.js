// The page's script lies in the file compressed, which is smaller, and runs when it takes the place of that.
const packed = document.getElementById("packed");
if (self.DecompressionStream) {
  const bytes = Uint8Array.from(atob(packed.text), c => c.charCodeAt(0));
  new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).text().then(text => {
    const script = document.createElement("script");
    script.text = text;
    packed.replaceWith(script);
  });
} else {
  const empty = document.getElementById("empty");
  empty.textContent = "This page needs a browser of 2023 or later.";
  empty.hidden = false;
}
