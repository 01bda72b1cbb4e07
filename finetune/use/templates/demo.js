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
