"use strict";
const form = document.querySelector("form");
const threshold = document.getElementById("threshold");

// Entities below the threshold are hidden at once; the form sends it with the next text.
function hide() {
  document.getElementById("shown-threshold").value = Number(threshold.value).toFixed(2);
  for (const one of document.querySelectorAll("[data-score]")) {
    one.classList.toggle("off", Number(one.dataset.score) < Number(threshold.value));
  }
}
threshold.addEventListener("input", hide);
hide();

form.addEventListener("submit", () => {
  document.getElementById("progress").textContent = "Tagging …";
  document.body.setAttribute("aria-busy", "true");
});
window.addEventListener("pageshow", () => {  // also when the reader comes back to this page
  document.getElementById("progress").textContent = "";
  document.body.removeAttribute("aria-busy");
});
document.getElementById("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    form.requestSubmit();
  }
});

const text = document.getElementById("text");
for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
  text.addEventListener(kind, async (event) => {
    const [file] = event.dataTransfer.files;
    if (kind !== "dragleave") {
      event.preventDefault();
    }
    text.classList.toggle("over", kind === "dragenter" || kind === "dragover");
    if (kind === "drop") {
      text.value = (file ? await file.text() : event.dataTransfer.getData("text")).slice(0, text.maxLength);
    }
  });
}

// The text of a link is behind "#", which browsers do not send.
function fill() {
  const kept = new URLSearchParams(location.hash.slice(1)).get("text");
  if (kept !== null) {
    text.value = kept.slice(0, text.maxLength);
  }
}
window.addEventListener("hashchange", fill);
fill();

// The entities that are shown, as JSON.
function shown() {
  const sides = JSON.parse(document.getElementById("json").textContent);
  for (const side of sides) {
    side.entities = side.entities.filter((one) => one.score >= Number(threshold.value));
  }
  return JSON.stringify(sides, null, 2);
}

async function copy(content) {
  const said = document.getElementById("copied");
  try {
    await navigator.clipboard.writeText(content);
    said.textContent = "Copied.";
  } catch {
    said.textContent = "This browser lets no page copy; use Download.";
  }
}

if (document.getElementById("json")) {
  document.getElementById("copy").addEventListener("click", () => copy(shown()));
  document.getElementById("link").addEventListener("click", () => {
    copy(`${location.origin}${location.pathname}#${new URLSearchParams({ text: text.value })}`);
  });
  document.getElementById("download").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([shown()], { type: "application/json" }));
    link.download = "entities.json";
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
