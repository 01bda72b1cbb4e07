// A flag as one copies it, `--min-score`: a leading dash means "without this word" to the search.
document.addEventListener(
  "input",
  (event) => {
    const field = event.target;
    if (!field.matches("[data-md-component=search-query]")) return;
    const plain = field.value.replace(/(^|\s)-+(?=\S)/g, "$1");
    if (plain !== field.value) field.value = plain;
  },
  true, // before the theme reads the field
);
